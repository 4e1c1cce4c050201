"""Engines: programs of many ranks, the collectives as algorithms, a cost model of them, and who carries their messages."""
