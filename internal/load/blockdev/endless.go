package blockdev

// EndlessBytes is the size of a device without end; see Endless.
const EndlessBytes = int64(1) << 62
