"""Files of a workspace that planrun and its workers do not share: they move by digest.

planrun knows the tree: which files a step finds, by path (`tree`). A worker keeps each content once, by its digest, and
places the tree into a folder for each step that runs at once (`lanes`, `contents`). What a step made and declared
comes back and is placed into planrun's workspace (`products`). The client process reads and writes the bytes
(`serving`); where a store is named, the bytes go through it (`store`).
"""
