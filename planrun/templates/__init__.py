"""Plan templates: the ones that planrun ships, and plans made from them."""
