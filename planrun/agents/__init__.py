"""Agents of a run: the loop of a model and its tools, driven by the engine's event loop; no thread, no asyncio."""
