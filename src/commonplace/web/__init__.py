"""The page people look at: server-rendered screens over a library, served beside the doors for programs."""
