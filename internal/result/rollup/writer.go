package rollup

import (
	"errors"
	"io/fs"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/braggdev/bragg/internal/durable"
	"github.com/braggdev/bragg/internal/result/frame"
)

const (
	// recordBytes is how much of the intervals file one record covers at most, unless a single frame is larger.
	recordBytes = 4 << 20
	// behindMax is how many records may wait to be written. Further ones are joined.
	behindMax = 64
)

// Writer appends records to a rollups file while another writer appends to the intervals file. It reads the intervals back instead of
// keeping them: they are in the cache of the operating system, and nothing has to be held in memory for each VM.
type Writer struct {
	folder    *durable.Folder // of the bundle, not closed here
	name      string
	file      *os.File // nil before the first record
	intervals *os.File
	encoder   *zstd.Encoder
	at        int64      // where records of the intervals file end
	cell      int64      // of the last call of Reached
	ends      chan int64 // where records end in the intervals file
	stopped   chan struct{}
}

// NewWriter continues the rollups file name after its last record that matches the intervals. The file appears with the first record.
func NewWriter(folder *durable.Folder, intervals, name string) (*Writer, error) {
	encoder, err := frame.NewEncoder()
	if err != nil {
		return nil, err
	}
	w := &Writer{folder: folder, name: name, encoder: encoder, ends: make(chan int64, behindMax), stopped: make(chan struct{})}
	if w.intervals, err = folder.Open(intervals, os.O_RDONLY, 0); err == nil {
		err = w.resume()
	}
	if err != nil {
		return nil, errors.Join(err, w.closeFiles())
	}
	go w.work()
	return w, nil
}

func (w *Writer) resume() error {
	info, err := w.intervals.Stat()
	if err != nil {
		return err
	}
	if w.file, err = w.folder.Open(w.name, os.O_RDWR|os.O_APPEND, 0); errors.Is(err, fs.ErrNotExist) {
		w.file = nil
		return nil
	} else if err != nil {
		return err
	}
	good, source := int64(0), Source{Intervals: w.intervals, Rollups: w.file}
	for j := range source.records(info.Size()) {
		w.at, good = j.end(), j.body.at+j.body.length
	}
	return w.file.Truncate(good)
}

func (w *Writer) closeFiles() error {
	var errs []error
	if w.file != nil {
		errs = append(errs, w.file.Sync(), w.file.Close())
	}
	if w.intervals != nil {
		errs = append(errs, w.intervals.Close())
	}
	return errors.Join(errs...)
}

// Reached says that the intervals file has new frames, whose intervals end at endNanos on the axis of the run. It does not wait.
func (w *Writer) Reached(endNanos int64) {
	cell := endNanos / int64(Cell)
	if w == nil || cell <= w.cell {
		return
	}
	info, err := w.intervals.Stat()
	if err != nil {
		return
	}
	select {
	case w.ends <- info.Size():
		w.cell = cell
	default:
	}
}

// Close ends writing, after the record that is being written, and makes all records safe against a power loss.
func (w *Writer) Close() error {
	if w == nil {
		return nil
	}
	close(w.ends)
	<-w.stopped
	_ = w.encoder.Close() // its frames are complete: each record ends one
	return w.closeFiles()
}

// work writes records until Close, or until one cannot be written: then evaluations read the intervals from there on.
func (w *Writer) work() {
	defer close(w.stopped)
	reader := worker{source: &Source{Intervals: w.intervals}, cuts: &Cuts{Cells: []Division{own}}, spare: make(chan *memory, 2)}
	for end := range w.ends {
		for j, err := range plain(w.intervals, w.at, end, recordBytes) {
			if err != nil {
				break
			}
			if w.write(&reader, j) != nil {
				return
			}
		}
	}
}

// write appends the record of a job.
func (w *Writer) write(reader *worker, j *job) error {
	b := builder{header: header{From: w.at}}
	err := reader.run(j, func(batch *Batch) {
		b.add(batch)
		select {
		case reader.spare <- batch.memory:
		default:
		}
	})
	if err != nil {
		return err
	}
	for _, s := range j.frames {
		b.header.Ends = append(b.header.Ends, s.at+s.length)
	}
	if b.header.Check, err = checksum(w.intervals, j.frames); err != nil {
		return err
	}
	record, err := b.append(nil, w.encoder)
	if err != nil {
		return err
	}
	if w.file == nil {
		if w.file, err = w.folder.Open(w.name, os.O_CREATE|os.O_EXCL|os.O_RDWR|os.O_APPEND, 0o600); err != nil {
			return err
		}
	}
	info, err := w.file.Stat()
	if err != nil {
		return err
	}
	if _, err := w.file.Write(record); err != nil {
		_ = w.file.Truncate(info.Size())
		return err
	}
	w.at = j.end()
	return nil
}
