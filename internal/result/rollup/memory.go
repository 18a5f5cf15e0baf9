package rollup

import (
	"github.com/klauspost/compress/zstd"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result/frame"
	"github.com/braggdev/bragg/internal/stat"
)

// memory is what a batch is made of. It is used again for later batches.
type memory struct {
	unpack  *zstd.Decoder
	decoder interval.Decoder // of folded intervals
	again   interval.Decoder // of single lines

	packed     []byte
	texts      [][]byte // of frames
	frames     int
	lines      []line
	each       []interval.Interval
	merged     []interval.Interval
	seconds    []interval.Interval
	histograms []*stat.Histogram
	used       int
}

// line is one line of a frame.
type line struct {
	text []byte
	at   int64 // of its frame
}

// largeHistograms is how many histograms a batch has before it is passed on; each takes up to 58 KiB.
const largeHistograms = 512

func newMemory() (*memory, error) {
	unpack, err := frame.NewDecoder()
	return &memory{unpack: unpack}, err
}

func (m *memory) large() bool { return m.used >= largeHistograms }

// histogram returns an empty histogram.
func (m *memory) histogram() *stat.Histogram {
	if m.used == len(m.histograms) {
		m.histograms = append(m.histograms, &stat.Histogram{})
	}
	m.used++
	h := m.histograms[m.used-1]
	h.Reset()
	return h
}

func (m *memory) reset() {
	m.frames, m.used = 0, 0
	m.lines, m.each, m.merged, m.seconds = m.lines[:0], m.each[:0], m.merged[:0], m.seconds[:0]
	m.decoder.Reset()
}

// text reads and unpacks one frame.
func (m *memory) text(f file, at, length int64) ([]byte, error) {
	m.packed = frame.Resize(m.packed, int(length))
	if _, err := f.ReadAt(m.packed, at); err != nil {
		return nil, err
	}
	if m.frames == len(m.texts) {
		m.texts = append(m.texts, nil)
	}
	text, err := m.unpack.DecodeAll(m.packed, m.texts[m.frames][:0])
	if err != nil {
		return nil, damaged(at, err)
	}
	m.texts[m.frames] = text
	m.frames++
	return text, nil
}

// fold reads one line.
func (m *memory) fold(text []byte, at int64) error {
	m.lines = append(m.lines, line{text, at})
	m.each = append(m.each, interval.Interval{})
	return m.decoder.Folded(text, &m.each[len(m.each)-1])
}
