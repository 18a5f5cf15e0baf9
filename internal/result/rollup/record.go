package rollup

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result/frame"
)

// A record is two frames of the rollups file: a line with a header, so that readers can pass over the rest, and the lines of single
// and merged intervals.

// header is the first frame of a record.
type header struct {
	From  int64   `json:"from"`  // bytes of the intervals file
	Ends  []int64 `json:"ends"`  // ends of the frames there
	Check uint32  `json:"check"` // CRC-32 of the checksums of those frames
	// Numbers of the lines that follow.
	Intervals int `json:"intervals"`
	Merged    int `json:"merged"`
	Seconds   int `json:"seconds"`
}

var errRecord = errors.New("record does not match the intervals")

// frames lists the frames of the intervals file that the record covers. It checks that they are those from which the record was made.
func (h *header) frames(f file, from, size int64) ([]span, error) {
	if len(h.Ends) == 0 || h.From != from {
		return nil, errRecord
	}
	list := make([]span, len(h.Ends))
	for i, end := range h.Ends {
		if list[i] = (span{from, end - from}); end-from < 8 || end > size {
			return nil, errRecord
		}
		from = end
	}
	check, err := checksum(f, list)
	if err == nil && check != h.Check {
		err = errRecord
	}
	return list, err
}

// checksum is that of a header.
func checksum(f file, frames []span) (uint32, error) {
	sum := crc32.NewIEEE()
	for _, s := range frames {
		var own [4]byte // each frame ends with the checksum of its content
		if _, err := f.ReadAt(own[:], s.at+s.length-4); err != nil {
			return 0, err
		}
		_ = binary.Write(sum, binary.LittleEndian, own)
	}
	return sum.Sum32(), nil
}

// builder makes the text of one record.
type builder struct {
	each, merged, seconds []byte
	header                header
}

func (b *builder) add(batch *Batch) {
	for i := range batch.Each {
		b.each = append(interval.AppendFolded(b.each, &batch.Each[i]), '\n')
	}
	for i := range batch.Merged {
		b.merged = append(interval.AppendMerged(b.merged, &batch.Merged[i]), '\n')
	}
	for i := range batch.Seconds {
		b.seconds = append(interval.AppendMerged(b.seconds, &batch.Seconds[i]), '\n')
	}
	b.header.Seconds += len(batch.Seconds)
	b.header.Intervals += len(batch.Each)
	b.header.Merged += len(batch.Merged)
}

// append appends both frames of the record. If it is too large for one, it says nothing of the intervals.
func (b *builder) append(dst []byte, encoder *zstd.Encoder) ([]byte, error) {
	body := slices.Concat(b.each, b.merged, b.seconds)
	if len(body) > frame.TextMax || len(body) == 0 {
		body, b.header.Intervals, b.header.Merged, b.header.Seconds = []byte("\n"), 0, 0, 0
	}
	head, err := json.Marshal(b.header)
	if err != nil {
		return dst, fmt.Errorf("write rollup: %w", err)
	}
	dst = encoder.EncodeAll(append(head, '\n'), dst)
	return encoder.EncodeAll(body, dst), nil
}
