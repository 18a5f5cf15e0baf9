package vioperf

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/memory"
	"github.com/braggdev/bragg/internal/load/program"
)

// skipped is how many buffers a skip read leaves out before the next one. The original does not document its distance.
const skipped = 9

// worker is one thread. It has two files: when one has reached its limit, the other one starts again at no length, so that writes
// always extend a file, and at least half of the limit remains for reads.
type worker struct {
	config  *config
	files   [2]*os.File
	sizes   [2]int64
	limit   int64 // of each file, a multiple of the buffer
	current int   // file that grows
	region  *memory.Region
	buffer  []byte
	count   uint64 // buffers written
	key     uint64
	summed  time.Duration // time of checksums in the test that runs
}

// newWorker fills the buffer with random words: compression finds nothing in them.
func newWorker(c *config, files [2]*os.File, limit int64, key uint64) (*worker, error) {
	r, err := memory.Map(c.buffer, false)
	if err != nil {
		return nil, err
	}
	w := &worker{config: c, files: files, limit: limit, region: r, buffer: r.Bytes(), key: key}
	for i := range len(w.buffer) / 8 {
		binary.LittleEndian.PutUint64(w.buffer[8*i:], load.Draw(key, uint64(i)))
	}
	return w, nil
}

// stampEvery is the distance of words that differ in each buffer: deduplication finds no equal blocks of that size.
const stampEvery = 4096

// stamp makes the content of the buffer new, with a checksum at its end.
func (w *worker) stamp() {
	w.count++
	for i := 0; i < len(w.buffer); i += stampEvery {
		binary.LittleEndian.PutUint64(w.buffer[i:], load.Draw(w.key^w.count<<20, uint64(i)))
	}
	if w.config.crc {
		began := time.Now()
		binary.LittleEndian.PutUint32(w.buffer[len(w.buffer)-4:], crc32.ChecksumIEEE(w.buffer[:len(w.buffer)-4]))
		w.summed += time.Since(began)
	}
}

// intact reports whether the checksum of a buffer that was read is that of its content.
func (w *worker) intact() bool {
	if !w.config.crc {
		return true
	}
	began := time.Now()
	defer func() { w.summed += time.Since(began) }()
	return binary.LittleEndian.Uint32(w.buffer[len(w.buffer)-4:]) == crc32.ChecksumIEEE(w.buffer[:len(w.buffer)-4])
}

// run does one test until ctx ends. The error is of a file system that takes no more writes, or of files without data.
func (w *worker) run(ctx context.Context, kind int, axis program.Axis, out chan<- program.Operation) error {
	w.summed = 0
	size := int64(len(w.buffer))
	if blocks := (w.sizes[0] + w.sizes[1]) / size; kind != write && blocks == 0 {
		return errors.New("the write test left no data to read")
	}
	for n := int64(0); ctx.Err() == nil; n++ {
		o := program.Operation{Kind: kind, Bytes: uint64(size)}
		var err error
		var took time.Duration
		switch kind {
		case write:
			took, err = w.append()
		case rewrite:
			o.Bytes *= 2 // it reads and writes
			took, err = w.again(n)
		case read:
			took, err = w.read(n)
		default:
			took, err = w.read(w.skip(n))
		}
		if errors.Is(err, errFull) {
			return err
		}
		if err != nil {
			o.Failed = class(err)
		}
		o.End, o.Latency = axis.Now(), int64(took)
		out <- o
		if err != nil && n == 0 {
			return err // nothing works: a loop of failures would only fill the record
		}
	}
	return nil
}

var (
	errFull    = errors.New("the file system is full")
	errCorrupt = errors.New("the checksum differs")
)

// class names a failure as errors of I/O are named.
func class(err error) string {
	var number syscall.Errno
	switch {
	case errors.Is(err, errCorrupt):
		return "crc"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "short-read"
	case errors.As(err, &number) && number == syscall.EIO:
		return "EIO"
	}
	return "other"
}

// append extends the current file.
func (w *worker) append() (time.Duration, error) {
	if w.sizes[w.current] >= w.limit {
		if err := w.files[w.current].Sync(); err != nil { // it may be truncated before the kernel would write it
			return 0, err
		}
		w.current = 1 - w.current
		if err := w.files[w.current].Truncate(0); err != nil {
			return 0, err
		}
		w.sizes[w.current] = 0
	}
	w.stamp()
	began := time.Now()
	_, err := w.files[w.current].WriteAt(w.buffer, w.sizes[w.current])
	took := time.Since(began)
	if errors.Is(err, syscall.ENOSPC) {
		err = errFull
	}
	if err == nil {
		w.sizes[w.current] += int64(len(w.buffer))
	}
	return took, err
}

// place is the file and the offset of a block; blocks of both files are numbered through, again and again.
func (w *worker) place(block int64) (*os.File, int64) {
	size := int64(len(w.buffer))
	at := block % ((w.sizes[0] + w.sizes[1]) / size) * size
	if at < w.sizes[0] {
		return w.files[0], at
	}
	return w.files[1], at - w.sizes[0]
}

// skip is the block of the n-th skip read. Each time through the files begins one block later.
func (w *worker) skip(n int64) int64 {
	blocks := (w.sizes[0] + w.sizes[1]) / int64(len(w.buffer))
	each := max(1, (blocks+skipped)/(skipped+1))
	return n%each*(skipped+1) + n/each%(skipped+1)
}

func (w *worker) read(block int64) (time.Duration, error) {
	f, at := w.place(block)
	began := time.Now()
	_, err := f.ReadAt(w.buffer, at)
	took := time.Since(began)
	if err == nil && !w.intact() {
		err = errCorrupt
	}
	return took, err
}

// again reads a block and writes a new one in its place.
func (w *worker) again(block int64) (time.Duration, error) {
	reading, err := w.read(block)
	if err != nil {
		return reading, err
	}
	w.stamp()
	f, at := w.place(block)
	began := time.Now()
	_, err = f.WriteAt(w.buffer, at)
	return reading + time.Since(began), err
}

// sync waits until what was written is on the disk.
func (w *worker) sync() error { return errors.Join(w.files[0].Sync(), w.files[1].Sync()) }

func (w *worker) close() error {
	return errors.Join(w.files[0].Close(), w.files[1].Close(), w.region.Close())
}
