"""Values as arrays in one form, and predicates tested on them."""
