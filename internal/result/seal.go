package result

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/durable"
)

// Seal is the content of seal.json: the end of the run and the hash of every file of the bundle.
type Seal struct {
	Format   int          `json:"format"`
	State    State        `json:"state"`
	Sealed   time.Time    `json:"sealed"`
	Verdict  Verdict      `json:"verdict"`
	Validity Validity     `json:"validity,omitempty"`
	Ended    string       `json:"ended"`
	Length   int64        `json:"duration_ns"`
	Files    []SealedFile `json:"files"`
}

// SealedFile is one file of a sealed bundle.
type SealedFile struct {
	Name   string `json:"name"` // slash-separated, relative to the folder
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"` // hex
}

// Seal ends writing: it writes the summary, syncs every file and finally writes the hash of each. After a write error, Seal seals
// what could be written; it returns that error only if sealing itself fails.
func (w *Writer) Seal(s Summary) error {
	if !w.shut() {
		return ErrClosed
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.closeFiles()
	w.freeReserve()
	if err := w.writeSeal(s); err != nil {
		// The first write error explains more than the failure of the seal that follows from it.
		return fmt.Errorf("seal bundle %q: %w", w.dir, cmp.Or(w.err, err))
	}
	return nil
}

func (w *Writer) writeSeal(s Summary) error {
	// Releasing the reserve has made room, so retry what failed on a full disk.
	if err := w.flushAndSync(); err != nil {
		return err
	}
	w.closeRollups()
	for _, sync := range []func() error{w.events.Sync, w.intervals.file.Sync, w.samples.file.Sync} {
		if err := sync(); err != nil {
			return err
		}
	}
	// Another folder, or a link to one, may have taken the bundle's place: do not write there.
	if err := w.stillThere(); err != nil {
		return err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := writeFileAtomic(w.folder, summaryFile, append(text, '\n')); err != nil {
		return err
	}
	seal := Seal{
		Format: FormatVersion, State: StateSealed, Sealed: time.Now().UTC(),
		Verdict: s.Verdict, Validity: s.Validity, Ended: s.Ended, Length: s.Duration,
	}
	if s.Ended == EndedAborted {
		seal.State = StateAborted
	}
	b, err := Open(w.dir)
	if err != nil {
		return err
	}
	defer b.Close()
	names, err := b.files()
	if err != nil {
		return err
	}
	for _, name := range names {
		file, err := b.hash(name)
		if err != nil {
			return err
		}
		seal.Files = append(seal.Files, file)
	}
	if text, err = json.MarshalIndent(seal, "", "  "); err != nil {
		return err
	}
	return writeFileAtomic(w.folder, sealFile, append(text, '\n'))
}

// files lists the files of the bundle that a seal covers.
func (b *Bundle) files() ([]string, error) {
	var names []string
	for _, name := range []string{manifestFile, planFile, eventsFile, intervalsFile, rollupsFile, samplesFile, summaryFile} {
		_, err := durable.StatWithin(b.root, name)
		if err == nil {
			names = append(names, name)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, damaged(name, err)
		}
	}
	attached, err := b.Attachments()
	for _, name := range attached {
		names = append(names, path.Join(attachmentsDir, name))
	}
	return names, err
}

func (b *Bundle) hash(name string) (SealedFile, error) {
	f, err := b.openRegular(name)
	if err != nil {
		return SealedFile{}, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	return SealedFile{Name: name, Bytes: n, SHA256: hex.EncodeToString(h.Sum(nil))}, err
}

// Sealed returns the seal, nil if the bundle has none.
func (b *Bundle) Sealed() *Seal { return b.seal }

// Difference is one file that differs from its sealed state.
type Difference struct {
	Name string // as in the seal
	How  string // "was changed after sealing", "is missing", "was added after sealing" or why it cannot be read
	Read bool   // reports read this file; others are read only by queries and by a new evaluation
}

// Differences compares every file with the seal, which takes about as long as reading them. An unsealed bundle has none.
func (b *Bundle) Differences() []Difference {
	if b.seal == nil {
		return nil
	}
	var list []Difference
	add := func(name, how string) {
		list = append(list, Difference{Name: name, How: how, Read: slices.Contains(reportedFiles, name)})
	}
	sealed := map[string]bool{}
	for _, want := range b.seal.Files {
		sealed[want.Name] = true
		have, err := b.hash(want.Name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			add(want.Name, "is missing")
		case err != nil:
			add(want.Name, "cannot be read: "+err.Error())
		case have != want:
			add(want.Name, "was changed after sealing")
		}
	}
	names, err := b.files()
	if err != nil {
		add(attachmentsDir, "cannot be listed: "+err.Error())
	}
	for _, name := range names {
		if !sealed[name] {
			add(name, "was added after sealing")
		}
	}
	return list
}

// reportedFiles are the files that reports read.
var reportedFiles = []string{manifestFile, planFile, eventsFile, summaryFile}

// VerifySeal compares every file with the seal and reports every difference, wrapped around ErrDamaged.
func (b *Bundle) VerifySeal() error {
	if b.seal == nil {
		return fmt.Errorf("verify bundle %q: it is not sealed", b.dir)
	}
	var faults []error
	for _, d := range b.Differences() {
		faults = append(faults, fmt.Errorf("%w: %s %s", ErrDamaged, d.Name, d.How))
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("verify bundle %q: %w", b.dir, err)
	}
	return nil
}
