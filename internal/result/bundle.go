package result

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"

	"github.com/braggdev/bragg/internal/durable"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result/frame"
	"github.com/braggdev/bragg/internal/result/rollup"
)

const (
	// documentBytesMax bounds manifest, plan, summary and seal.
	documentBytesMax = 512 << 20
	// lineBytesMax bounds one event.
	lineBytesMax = 16 << 20
)

// ErrNewer means that a newer version of the program wrote the bundle.
var ErrNewer = errors.New("bundle has a newer format")

// ErrDamaged means that a file of the bundle has damage that a writer, even one that died, does not cause.
var ErrDamaged = frame.ErrDamaged

// Bundle is a read-only view of one run. It reads lazily and may be used from several goroutines at once. A bundle that is still
// being written can be opened too; each iteration shows what was flushed when it began.
//
// In an unsealed bundle, iterations end silently where the writer was cut off. In a sealed one, and for damage that a dying
// writer cannot cause, they yield an error that wraps ErrDamaged and end.
type Bundle struct {
	dir      string
	root     *os.Root // links in a foreign bundle cannot lead outside the folder
	manifest Manifest
	seal     *Seal
}

// Open opens the bundle in dir.
func Open(dir string) (*Bundle, error) {
	root, err := durable.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open bundle: %w", err)
	}
	return open(dir, root)
}

// OpenIn opens the bundle of a run in a runs folder. Its folder must not be a link: the user named the run, and no path.
func OpenIn(runs, id string) (*Bundle, error) {
	folder, err := durable.OpenFolder(runs)
	if err != nil {
		return nil, fmt.Errorf("open bundle: %w", err)
	}
	defer folder.Close()
	root, err := folder.Root(id)
	if err != nil {
		return nil, fmt.Errorf("open bundle: %w", err)
	}
	return open(folder.Path(id), root)
}

func open(dir string, root *os.Root) (*Bundle, error) {
	b := &Bundle{dir: dir, root: root}
	if err := b.load(); err != nil {
		root.Close()
		return nil, fmt.Errorf("open bundle %q: %w", dir, err)
	}
	return b, nil
}

func (b *Bundle) load() error {
	text, err := b.document(manifestFile)
	if err != nil {
		return err
	}
	var version struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(text, &version); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, manifestFile, err)
	}
	if version.Format > FormatVersion {
		return fmt.Errorf("%w: %d, this program reads up to %d", ErrNewer, version.Format, FormatVersion)
	}
	if version.Format < 1 {
		return fmt.Errorf("%w: %s: no format version", ErrDamaged, manifestFile)
	}
	if err := json.Unmarshal(text, &b.manifest); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, manifestFile, err)
	}
	text, err = b.document(sealFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	b.seal = &Seal{}
	if err := json.Unmarshal(text, b.seal); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, sealFile, err)
	}
	return nil
}

// document reads a whole regular file of bounded size.
func (b *Bundle) document(name string) ([]byte, error) {
	f, err := b.openRegular(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, documentBytesMax+1))
	if err != nil {
		return nil, err
	}
	if len(text) > documentBytesMax {
		return nil, fmt.Errorf("%w: %s: larger than %d bytes", ErrDamaged, name, documentBytesMax)
	}
	return text, nil
}

func (b *Bundle) openRegular(name string) (*os.File, error) {
	f, err := durable.OpenRegular(b.root, name)
	return f, damaged(name, err)
}

func damaged(name string, err error) error {
	if errors.Is(err, durable.ErrIrregular) {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, name, err)
	}
	return err
}

// ReplaceFile writes a file of the folder that was opened, whatever is at its path by now: see ReplaceFile.
func (b *Bundle) ReplaceFile(name string, write func(io.Writer) error) error {
	return replaceIn(durable.FolderOf(b.root), name, write)
}

// Close releases the folder.
func (b *Bundle) Close() error { return b.root.Close() }

// Dir returns the folder.
func (b *Bundle) Dir() string { return b.dir }

// Manifest returns the manifest.
func (b *Bundle) Manifest() Manifest { return b.manifest }

// State reports whether the bundle is sealed.
func (b *Bundle) State() State {
	if b.seal == nil {
		return StateRunning
	}
	return b.seal.State
}

// Live reports whether a process is writing the bundle now.
func (b *Bundle) Live() bool {
	f, err := b.openRegular(eventsFile)
	if err != nil {
		return false
	}
	defer f.Close()
	return locked(f)
}

// Summary returns the evaluation of the run; before the bundle is sealed, an error that wraps fs.ErrNotExist.
func (b *Bundle) Summary() (Summary, error) {
	var s Summary
	text, err := b.document(summaryFile)
	if err != nil {
		return s, fmt.Errorf("read summary of %q: %w", b.dir, err)
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("read summary of %q: %w: %w", b.dir, ErrDamaged, err)
	}
	return s, nil
}

// Plan returns the plan as written, nil if there is none.
func (b *Bundle) Plan() (json.RawMessage, error) {
	text, err := b.document(planFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read plan of %q: %w", b.dir, err)
	}
	if !json.Valid(text) {
		return nil, fmt.Errorf("read plan of %q: %w: not JSON", b.dir, ErrDamaged)
	}
	return bytes.TrimSpace(text), nil
}

// Attachments lists the names of attached files, sorted.
func (b *Bundle) Attachments() ([]string, error) {
	var names []string
	err := fs.WalkDir(b.root.FS(), attachmentsDir, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && name == attachmentsDir {
			return fs.SkipAll
		}
		if err != nil {
			return err
		}
		if name == attachmentsDir && !d.IsDir() {
			return fmt.Errorf("%w: it is not a folder", ErrDamaged)
		}
		if d.Type().IsRegular() && d.Name()[0] != '.' {
			names = append(names, name[len(attachmentsDir)+1:])
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list attachments of %q: %w", b.dir, err)
	}
	slices.Sort(names)
	return names, nil
}

// Attachment opens an attached file.
func (b *Bundle) Attachment(name string) (io.ReadCloser, error) {
	if err := checkAttachmentName(name); err != nil {
		return nil, fmt.Errorf("open attachment: %w", err)
	}
	f, err := b.openRegular(path.Join(attachmentsDir, name))
	if err != nil {
		return nil, fmt.Errorf("open attachment %q: %w", name, err)
	}
	return f, nil
}

// Events iterates over events in the order in which they were written.
func (b *Bundle) Events() iter.Seq2[interval.Event, error] {
	return func(yield func(interval.Event, error) bool) {
		more := true
		err := b.lines(eventsFile, scanPlain, func(line []byte) (bool, error) {
			var e interval.Event
			if err := json.Unmarshal(line, &e); err != nil {
				return true, err
			}
			more = yield(e, nil)
			return more, nil
		})
		if err != nil && more {
			yield(interval.Event{}, err)
		}
	}
}

// Intervals iterates over intervals in the order in which they were written. The histograms of an Interval are valid
// until the next one is yielded: merge them, or keep a Clone.
func (b *Bundle) Intervals() iter.Seq2[interval.Interval, error] {
	return func(yield func(interval.Interval, error) bool) {
		var decode interval.Decoder
		more := true
		err := b.lines(intervalsFile, scanFramed, func(line []byte) (bool, error) {
			iv, err := decode.Line(line)
			if err != nil {
				return true, err
			}
			more = yield(iv, nil)
			return more, nil
		})
		if err != nil && more {
			yield(interval.Interval{}, err)
		}
	}
}

// Batches iterates over intervals as Intervals does, but on all processors, and by merged records where the cuts allow.
func (b *Bundle) Batches(ctx context.Context, cuts rollup.Cuts) iter.Seq2[*rollup.Batch, error] {
	return func(yield func(*rollup.Batch, error) bool) {
		f, err := b.openStream(intervalsFile)
		if err != nil {
			yield(nil, err)
		}
		if f == nil {
			return
		}
		defer f.Close()
		source := rollup.Source{Intervals: f}
		if rollups, err := b.openRegular(rollupsFile); err == nil {
			defer rollups.Close()
			if b.rollupsTrusted() {
				source.Rollups = rollups
			}
		}
		for batch, err := range source.Batches(ctx, cuts) {
			if err != nil {
				if err = b.judge(intervalsFile, err); err == nil {
					return
				}
			}
			if !yield(batch, err) {
				return
			}
		}
	}
}

// rollupsTrusted is false if the seal does not know the rollups: what merges numbers must not be able to change them.
func (b *Bundle) rollupsTrusted() bool {
	if b.seal == nil {
		return true
	}
	have, err := b.hash(rollupsFile)
	return err == nil && slices.Contains(b.seal.Files, have)
}

// Samples iterates over samples in the order in which they were written. Labels are shared between samples of one
// series: do not change them.
func (b *Bundle) Samples() iter.Seq2[Sample, error] {
	return func(yield func(Sample, error) bool) {
		r := sampleReader{series: map[int]seriesDefinition{}}
		more := true
		err := b.lines(samplesFile, scanFramed, func(line []byte) (bool, error) {
			var err error
			more, err = r.line(line, yield)
			return more, err
		})
		if err != nil && more {
			yield(Sample{}, err)
		}
	}
}
