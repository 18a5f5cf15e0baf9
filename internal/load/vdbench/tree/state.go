package tree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/unit"
)

// Tree is a layout below a folder of this machine. Safe for concurrent use, except Format and Scan.
type Tree struct {
	Layout
	Root string

	mu      sync.Mutex
	files   []state
	folders []state
}

// state is what is known of a file or folder.
type state struct {
	there bool
	whole bool // it has its size
	users uint16
}

// Scan finds out what exists.
func (t *Tree) Scan(ctx context.Context) error {
	t.files, t.folders = make([]state, t.Count()), make([]state, t.Folders())
	for i := range t.folders {
		if _, err := os.Lstat(t.folder(i)); err == nil {
			t.folders[i].there = true
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for i := range t.files {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		info, err := os.Lstat(t.file(i))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		t.files[i].there = err == nil
		t.files[i].whole = err == nil && info.Size() == t.Size(i)
	}
	return nil
}

func (t *Tree) folder(n int) string { return filepath.Join(t.Root, t.Folder(n)) }
func (t *Tree) file(n int) string   { return filepath.Join(t.Root, t.File(n)) }

// Whole is how many files have their size.
func (t *Tree) Whole() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.files {
		if t.files[i].whole {
			n++
		}
	}
	return n
}

// Complete reports whether every file exists with its size.
func (t *Tree) Complete() bool { return t.Whole() == len(t.files) }

// Mode is what a format does.
type Mode struct {
	Clean   bool // it removes what exists first
	Folders bool // it makes folders
	Files   bool // it makes and writes files
}

const (
	formatThreads = 8 // as vdbench has them
	formatBytes   = 128 * unit.KiB
)

// Format makes the tree, and leaves what is complete. It calls wrote for every file, from several goroutines.
func (t *Tree) Format(ctx context.Context, m Mode, wrote func(bytes int64)) error {
	if m.Clean {
		if err := os.RemoveAll(t.Root); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(t.Root, 0o700); err != nil {
		return err
	}
	if err := t.Scan(ctx); err != nil {
		return err
	}
	for i := range t.folders {
		if !m.Folders || ctx.Err() != nil {
			break
		}
		if err := os.Mkdir(t.folder(i), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		t.folders[i].there = true
	}
	if m.Files {
		if err := t.writeAll(ctx, wrote); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return syncAll(t.Root)
}

// writeAll writes every file that is not whole.
func (t *Tree) writeAll(ctx context.Context, wrote func(bytes int64)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var group sync.WaitGroup
	for range formatThreads {
		group.Go(func() {
			c := newContent(0)
			for ctx.Err() == nil {
				i := int(next.Add(1) - 1)
				if i >= len(t.files) {
					return
				}
				if t.files[i].whole {
					continue
				}
				if err := t.write(ctx, i, c.of(load.Key(t.Key, uint64(i)))); err != nil {
					cancel(err)
					return
				}
				t.files[i].there, t.files[i].whole = true, true
				wrote(t.Size(i))
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

func (t *Tree) write(ctx context.Context, i int, c *content) (err error) {
	f, err := os.OpenFile(t.file(i), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for left := t.Size(i); left > 0; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := f.Write(c.next(min(left, formatBytes)))
		if err != nil {
			return fmt.Errorf("format: %w", err)
		}
		left -= int64(n)
	}
	return nil
}

// want is a file or folder that an operation needs.
type want struct {
	there, whole bool
	alone        bool // no other operation has it
	inOrder      bool
	random       func() float64
	cursor       *atomic.Int64
}

// What take returns instead of a file: there is none, or others have all of them.
const (
	takenNone = -1
	takenBusy = -2
)

// take finds a file, or a folder, and counts its user.
func (t *Tree) take(list []state, w want, fits func(int) bool) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(list)
	if n == 0 {
		return takenNone
	}
	none := takenNone
	var from int
	if w.inOrder {
		from = int(uint64(w.cursor.Add(1)-1) % uint64(n))
	} else {
		from = int(w.random() * float64(n))
	}
	for k := range n {
		i := (from + k) % n
		s := &list[i]
		if s.there != w.there || w.whole && !s.whole || fits != nil && !fits(i) {
			continue
		}
		if w.alone && s.users > 0 {
			none = takenBusy
			continue
		}
		if w.inOrder && k > 0 {
			w.cursor.Add(int64(k))
		}
		s.users++
		return i
	}
	return none
}

// release ends the use, with what an operation has changed.
func (t *Tree) release(s *state, change func(*state)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.users--
	if change != nil {
		change(s)
	}
}

// childless reports whether a folder has neither folders nor files, and no other operation is making one. The caller holds the lock.
func (t *Tree) childless(n int) bool {
	if first := t.first(); n >= first {
		for i := range t.Files {
			if s := &t.files[(n-first)*t.Files+i]; s.there || s.users > 0 {
				return false
			}
		}
	}
	for i := range t.Width {
		if child := (n+1)*t.Width + i; child < len(t.folders) && (t.folders[child].there || t.folders[child].users > 0) {
			return false
		}
	}
	return true
}

// hasParent reports whether the folder above a folder exists and is not being removed. The caller holds the lock.
func (t *Tree) hasParent(n int) bool { return n < t.Width || t.stays(n/t.Width-1) }

// hasFolder reports the same of the folder of a file. The caller holds the lock.
func (t *Tree) hasFolder(file int) bool { return t.stays(t.first() + file/t.Files) }

// stays reports whether a folder exists and no operation has it. Those that have an existing folder remove it.
func (t *Tree) stays(folder int) bool { return t.folders[folder].there && t.folders[folder].users == 0 }
