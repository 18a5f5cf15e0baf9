package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/durable"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result/rollup"
)

// Names of the files of a bundle. Other files in the folder (journal, metric store, disks of VMs) are not part of the bundle and
// not covered by its seal.
const (
	manifestFile   = "manifest.json"
	planFile       = "plan.json"
	eventsFile     = "events.ndjson"
	intervalsFile  = "intervals.ndjson.zst"
	rollupsFile    = "rollups.ndjson.zst"
	samplesFile    = "samples.ndjson.zst"
	summaryFile    = "summary.json"
	sealFile       = "seal.json"
	attachmentsDir = "attachments"
	reserveFile    = ".reserve"
)

const (
	// flushEvery bounds how many seconds of intervals and samples a killed process loses. Events are written immediately.
	flushEvery = time.Second
	// syncEvery bounds the data that a power loss destroys.
	syncEvery = 10 * time.Second
	// flushBytes is how much text may wait for a flush.
	flushBytes = 4 << 20
	// samplesPerFlush bounds how far one call can overshoot flushBytes.
	samplesPerFlush = 10_000
	// reserveBytes are allocated on the disk at the start and released when it is full, to make room for the last events and the
	// summary.
	reserveBytes = 4 << 20
	// attachmentBytesMax bounds one attached file.
	attachmentBytesMax = 256 << 20
)

// ErrSealed means that a bundle is complete and accepts no writes.
var ErrSealed = errors.New("bundle is sealed")

// ErrClosed means that the Writer has already been closed or sealed.
var ErrClosed = errors.New("bundle writer is closed")

// Writer appends to one bundle. Its methods may be called from several goroutines. The first write error is kept: every
// later call returns it, and Failed reports it to the guard of the run.
//
// Event writes an event before it returns. Intervals and samples are collected and written once a second as one compressed frame.
// Everything is synced to the disk every ten seconds, and by Seal.
type Writer struct {
	dir      string
	folder   *durable.Folder
	manifest Manifest

	mu        sync.Mutex
	events    *os.File
	intervals *appender
	samples   *appender
	rollups   *rollup.Writer
	reached   int64          // end of the intervals so far, on the axis
	series    map[string]int // identity of a sampled series → its number in the file
	dirty     bool           // written since the last sync
	synced    time.Time
	err       error
	failed    chan struct{}
	closed    bool
	stop      chan struct{}
	stopped   chan struct{}
}

// Create creates the folder dir, which must not exist or must contain no bundle files, writes the manifest and returns a Writer.
// A Format of 0 is set to FormatVersion.
func Create(dir string, m Manifest) (*Writer, error) {
	if m.Format == 0 {
		m.Format = FormatVersion
	}
	if m.Format != FormatVersion {
		return nil, fmt.Errorf("create bundle %q: cannot write format %d", dir, m.Format)
	}
	if err := os.MkdirAll(dir, folderMode); err != nil {
		return nil, fmt.Errorf("create bundle: %w", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, manifestFile)); err == nil {
		return nil, fmt.Errorf("create bundle %q: there is one already", dir)
	}
	w := &Writer{dir: dir, manifest: m, series: map[string]int{}}
	if err := w.open(os.O_CREATE | os.O_EXCL); err != nil {
		return nil, fmt.Errorf("create bundle %q: %w", dir, err)
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err == nil {
		err = writeFileAtomic(w.folder, manifestFile, append(text, '\n'))
	}
	if err != nil {
		w.freeReserve()
		w.closeFiles()
		return nil, fmt.Errorf("create bundle %q: %w", dir, err)
	}
	w.start()
	return w, nil
}

// Continue opens an unsealed bundle whose writer died, cuts off what it left partly written, and appends. It fails while another
// process writes the bundle.
func Continue(dir string) (*Writer, error) {
	b, err := Open(dir)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	if b.State() == StateSealed || b.State() == StateAborted {
		return nil, fmt.Errorf("continue bundle %q: %w", dir, ErrSealed)
	}
	w := &Writer{dir: dir, manifest: b.Manifest(), series: map[string]int{}}
	if err := w.open(os.O_CREATE); err != nil {
		return nil, fmt.Errorf("continue bundle %q: %w", dir, err)
	}
	err = ErrSealed
	if _, statErr := os.Lstat(filepath.Join(dir, sealFile)); statErr != nil { // checked again under the lock
		err = errors.Join(RemoveTemporary(dir), w.cutTails())
	}
	if err != nil {
		w.freeReserve()
		w.closeFiles()
		return nil, fmt.Errorf("continue bundle %q: %w", dir, err)
	}
	w.start()
	return w, nil
}

func (w *Writer) open(flag int) error {
	flag |= os.O_RDWR | os.O_APPEND
	var err error
	if w.folder, err = durable.OpenFolder(w.dir); err != nil {
		return err
	}
	if w.events, err = w.folder.Open(eventsFile, flag, fileMode); err == nil {
		err = lockFile(w.events)
	}
	if err == nil {
		w.intervals, err = newAppender(w.folder, intervalsFile, flag)
	}
	if err == nil {
		w.samples, err = newAppender(w.folder, samplesFile, flag)
	}
	if err != nil {
		w.closeFiles()
		return err
	}
	return w.takeReserve()
}

// takeReserve allocates the reserve; a disk that is too full for it is too full for a run.
func (w *Writer) takeReserve() error {
	err := w.folder.Remove(reserveFile) // of a writer that died
	if err == nil {
		var f *os.File
		if f, err = w.folder.Open(reserveFile, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode); err == nil {
			_, err = f.Write(make([]byte, reserveBytes))
			err = errors.Join(err, f.Close())
		}
	}
	if err != nil {
		w.freeReserve()
		w.closeFiles()
	}
	return err
}

func (w *Writer) freeReserve() { _ = w.folder.Remove(reserveFile) }

func (w *Writer) start() {
	w.rollups, _ = rollup.NewWriter(w.folder, intervalsFile, rollupsFile) // without them, an evaluation takes longer
	w.synced = time.Now()
	w.failed = make(chan struct{})
	w.stop = make(chan struct{})
	w.stopped = make(chan struct{})
	go w.flushLoop()
}

func (w *Writer) flushLoop() {
	defer close(w.stopped)
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-tick.C:
			w.flushTick()
		}
	}
}

// flushTick writes the collected data and, when due, syncs. Writers continue during a sync, which may take seconds on a busy
// disk. The files stay open, because Close waits for the flusher.
func (w *Writer) flushTick() {
	w.mu.Lock()
	if w.err == nil {
		_ = w.fail(errors.Join(w.stillThere(), w.flush()))
	}
	due := w.err == nil && w.dirty && time.Since(w.synced) >= syncEvery
	if due {
		w.dirty, w.synced = false, time.Now()
	}
	w.mu.Unlock()
	if !due {
		return
	}
	if err := w.sync(); err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.dirty = true
		_ = w.fail(err)
	}
}

func (w *Writer) sync() error {
	for _, f := range []*os.File{w.events, w.intervals.file, w.samples.file} {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return nil
}

// Dir returns the folder.
func (w *Writer) Dir() string { return w.dir }

// Failed is closed at the first write error, usually a full disk. Err returns it.
func (w *Writer) Failed() <-chan struct{} { return w.failed }

// Err returns the first write error.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// fail keeps the first error, if there is one. The caller holds the lock. It releases the reserve, to make room for Seal.
func (w *Writer) fail(err error) error {
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("write bundle %q: %w", w.dir, err)
		w.freeReserve()
		close(w.failed)
	}
	return w.err
}

// Event appends one event.
func (w *Writer) Event(e interval.Event) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	// Events are still tried after the disk filled up: the reserve makes room for them.
	if w.closed {
		return ErrClosed
	}
	w.dirty = true
	return w.fail(appendAll(w.events, append(line, '\n')))
}

func (w *Writer) usable() error {
	if w.closed {
		return ErrClosed
	}
	return w.err
}

// Interval appends one interval. It is encoded before Interval returns.
func (w *Writer) Interval(iv interval.Interval) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usable(); err != nil {
		return err
	}
	w.reached = max(w.reached, iv.EndNanos())
	w.intervals.text = append(interval.AppendJSON(w.intervals.text, &iv), '\n')
	return w.flushIfFull(w.intervals)
}

// Sample appends samples. Samples of one call with the same time are stored together, so one call per scrape is best.
func (w *Writer) Sample(samples ...Sample) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usable(); err != nil {
		return err
	}
	for chunk := range slices.Chunk(samples, samplesPerFlush) {
		w.samples.text = appendSamples(w.samples.text, chunk, w.series)
		if err := w.flushIfFull(w.samples); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) flushIfFull(a *appender) error {
	if len(a.text) < flushBytes {
		return nil
	}
	w.dirty = true
	if err := a.flush(); err != nil {
		return w.fail(err)
	}
	w.rollups.Reached(w.reached)
	return nil
}

// Flush writes the collected data, so that Open sees it.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usable(); err != nil {
		return err
	}
	return w.fail(w.flush())
}

func (w *Writer) flush() error {
	for _, a := range []*appender{w.intervals, w.samples} {
		if len(a.text) == 0 {
			continue
		}
		w.dirty = true
		if err := a.flush(); err != nil {
			return err
		}
	}
	w.rollups.Reached(w.reached)
	return nil
}

// flushAndSync makes all data safe against a power loss. The caller holds the lock.
func (w *Writer) flushAndSync() error {
	if err := w.flush(); err != nil || !w.dirty {
		return err
	}
	if err := w.sync(); err != nil {
		return err
	}
	w.dirty, w.synced = false, time.Now()
	return nil
}

// WritePlan writes the plan as JSON. A later call replaces it.
func (w *Writer) WritePlan(plan any) error {
	text, err := json.MarshalIndent(plan, "", "  ")
	if err != nil {
		return fmt.Errorf("write plan: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usable(); err != nil {
		return err
	}
	return w.fail(writeFileAtomic(w.folder, planFile, append(text, '\n')))
}

// Attach copies r into the bundle under name, a slash-separated relative path: job files, playbooks, logs. A name that
// leads out of the folder is refused. A later call with the same name replaces the file.
func (w *Writer) Attach(name string, r io.Reader) error {
	if err := checkAttachmentName(name); err != nil {
		return fmt.Errorf("attach file: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(r, attachmentBytesMax+1))
	if err != nil {
		return fmt.Errorf("attach %q: %w", name, err)
	}
	if len(text) > attachmentBytesMax {
		return fmt.Errorf("attach %q: larger than %d bytes", name, attachmentBytesMax)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usable(); err != nil {
		return err
	}
	name = path.Join(attachmentsDir, name)
	if err := w.folder.MakeAll(path.Dir(name), folderMode); err != nil {
		return w.fail(err)
	}
	return w.fail(writeFileAtomic(w.folder, name, text))
}

// AttachFolder creates a folder among the attachments and returns its path. Other programs may write there until the bundle is
// sealed; the seal covers regular files whose names Attach would accept.
func (w *Writer) AttachFolder(name string) (string, error) {
	if err := checkAttachmentName(name); err != nil {
		return "", fmt.Errorf("attach folder: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usable(); err != nil {
		return "", err
	}
	name = path.Join(attachmentsDir, name)
	return w.folder.Path(name), w.fail(w.folder.MakeAll(name, folderMode))
}

// Close writes the collected data and leaves the bundle unsealed. After Seal or Close it does nothing.
func (w *Writer) Close() error {
	if !w.shut() {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		_ = w.fail(w.flushAndSync())
	}
	w.freeReserve()
	w.closeFiles()
	return w.err
}

// shut stops the flusher and refuses further writes. It returns false if that was already done.
func (w *Writer) shut() bool {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return false
	}
	w.closed = true
	w.mu.Unlock()
	close(w.stop)
	<-w.stopped
	return true
}

func (w *Writer) closeFiles() {
	w.closeRollups() // while the lock keeps other writers away
	if w.events != nil {
		unlockFile(w.events)
		_ = w.events.Close()
	}
	w.intervals.close()
	w.samples.close()
	_ = w.folder.Close()
}

// closeRollups waits for the record that is being written. An evaluation does not need it.
func (w *Writer) closeRollups() {
	_ = w.rollups.Close()
	w.rollups = nil
}
