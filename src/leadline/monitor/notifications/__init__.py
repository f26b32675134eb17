"""Alarms told to people and programs: messages, the kinds of channels they go through, and an outbox in the store.

What is to be told is written beside the alarm, in the same transaction (:func:`.outbox.enqueue`). It is sent later,
outside of any transaction, until it has arrived (:func:`.outbox.deliver`).
"""
