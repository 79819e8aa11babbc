"""The wire between learners and the syncer: the syncer's end.

The interface, both ends (the learner's is `workbench.engine.learner_wire.LearnerWire`)::

    wire = SyncerWire(run_id, sizes, folder=path)                    # one machine: sockets and blocks in `folder`
    wire = SyncerWire(run_id, sizes, listen="tcp://127.0.0.1:5555", keys=None | ServerKeys)   # bulk: the next port
    wire.address                              # what learners are given: str(folder), or tcp://host:port (port 0: chosen)

    while True:
        for connection, message in wire.poll(timeout_ms): ...        # decoded, checked LearnerMessage
        for connection in wire.closed(): ...                         # after the messages: these are gone
        for connection, fragment, version in wire.handed(): ...      # UPDATEs that left this process
        wire.ready()                          # watched file descriptors that became readable in the last poll
    wire.send(connection, CONTROL | BULK, message, payload=None) -> bool    # never blocks; False: gone or full
    wire.payload(handle) -> np.ndarray        # of message.handle: read-only vector of the codec's dtype
    wire.release(handle)                      # once per handle, also of messages that are not used
    wire.peer(connection) -> Peer             # learner, process_number
    wire.watch(fd); wire.unwatch(fd); wire.wake()    # wake() from any thread ends the poll in progress
    wire.refused                              # Counter: reason -> frames dropped for it
    wire.disconnect(connection); wire.close()

    wire = LearnerWire(run_id, sizes, learner, process_number, address, slots=6, keys=None | ClientKeys)
    wire.connect()                            # never waits; a connect in progress is left alone for some seconds
    wire.poll(timeout_ms) -> [(connection, SyncerMessage)];  wire.opened() -> [connection];  wire.closed() -> [connection]
    wire.send(connection, channel, message, payload=None) -> bool
    wire.refusal                              # "" or why the syncer (or its key check) would not have this process

Order in a learner: poll, then opened(), then the messages, then closed() (-1: a connect that came to nothing).
A poll may return early with nothing.  An end belongs to one thread; only ``wake`` may be called from others.
The payload of a FRAGMENT must not be changed after `send`; that of an UPDATE is copied at once.
The message's own ``handle`` is not sent; the receiving end puts in its own.
"""
