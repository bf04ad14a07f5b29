"""How well the engine finds: judged collections put through the real Library, measured, stored and compared."""
