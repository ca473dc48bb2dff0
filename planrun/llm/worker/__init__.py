"""The process that calls a model: a loop around Anthropic's library that repeats, counts and never fails silently.

serving.py hears planrun and keeps the deadline, calling.py repeats, asking.py makes one attempt and reads its stream,
order.py holds the stream to its order, outcomes.py says what came of it, tally.py counts tokens, shelter.py closes the
process to others.
"""
