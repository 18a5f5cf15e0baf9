package ioengine

// readBuffersMax bounds the buffers of a clone that only reads: what is read is thrown away, so slots may share them.
const readBuffersMax = 64 << 20

// bufferBytes is the largest block, in whole pages.
func (s *jobSpec) bufferBytes() int64 {
	const page = 4096
	return (s.blockMax() + page - 1) / page * page
}

// bufferCount is how many buffers a clone has: one for each operation that writes.
func (s *jobSpec) bufferCount() int64 {
	switch {
	case s.kind.dataless() || s.trims && !s.writes && !s.reads:
		return 0
	case s.writes || s.verify != nil:
		return int64(s.places())
	}
	return min(int64(s.depth), max(1, readBuffersMax/s.bufferBytes()))
}
