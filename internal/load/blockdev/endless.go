package blockdev

// EndlessBytes stands for the size of a device that has none; see Endless.
const EndlessBytes = int64(1) << 62
