"""The quality of searches: judged collections put through the real Library, measured, stored and compared."""
