"""What commands ask of the outside world: one Protocol a module, kept by an edge and by a fake."""
