"""The process that calls a model: a loop around Anthropic's library that repeats, counts and never fails silently.

serve.py reads requests and keeps the deadline; caller.py repeats; call.py counts tokens and reports the result;
stream.py makes one attempt and checks its stream; outcomes.py classifies errors. caller.py, stream.py and outcomes.py
load the library.
"""
