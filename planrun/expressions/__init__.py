"""The one expression language: parsed and checked at load time, walked at run time."""
