"""What comes out: estimates and their parts, in words, tables and markup."""
