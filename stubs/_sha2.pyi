from hashlib import sha256 as sha256
