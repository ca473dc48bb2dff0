"""Places that several machines share: a folder, or a URL of an object store; objects with names and bytes."""
