"""What tests share: programs in processes of their own, servers, libraries of real parts, generated data."""
