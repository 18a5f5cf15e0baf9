package tree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/wait"
)

// Operation is what a file workload does.
type Operation string

// Operations that are supported. Those of vdbench that are missing are open, close, copy and move.
const (
	Read    Operation = "read"
	Write   Operation = "write"
	GetAttr Operation = "getattr"
	SetAttr Operation = "setattr"
	Reach   Operation = "access"
	Create  Operation = "create"
	Delete  Operation = "delete"
	MakeDir Operation = "mkdir"
	RmDir   Operation = "rmdir"
)

// Operations are all of them.
var Operations = []Operation{Read, Write, GetAttr, SetAttr, Reach, Create, Delete, MakeDir, RmDir}

// Moves reports whether an operation reads or writes data.
func (o Operation) Moves() bool { return o == Read || o == Write }

// Access is how files are opened.
type Access struct{ Direct, Sync, Flush bool }

// Work is one file workload on one tree.
type Work struct {
	Name      string
	Tree      *Tree
	Operation Operation
	Reads     float64 // percent of operations that read, of those that move data
	Sizes     []Share // of transfers
	Random    bool    // places in files; otherwise files are read or written from their begin to their end
	Shared    bool    // several threads may have one file open for random I/O
	InOrder   bool    // files are taken one after the other
	StopAfter int     // operations of random I/O on one open file
	Access    Access
	Threads   int
	Share     float64 // of all operations of a run
	Key       uint64
}

// Errors that end a thread.
var (
	errNone = errors.New("no file is left for it")
	errOver = errors.New("the run is over")
)

// thread does the operations of a workload one after the other.
type thread struct {
	*Work
	drive  *Drive
	index  int           // of the workload
	cursor *atomic.Int64 // of the workload
	key    uint64
	drawn  uint64
	buffer *content

	stuckAt uint64 // number of changes after which it found nothing, plus 1
}

// lookAgain is when a thread looks again for a file that others have, or may make.
const lookAgain = time.Millisecond

// without returns what a thread does that found no file after a number of changes: nothing for a while, or it ends.
func (t *thread) without(ctx context.Context, taken int, seen uint64) error {
	for {
		if taken == takenNone && !t.drive.hope(t, seen) {
			return errNone
		}
		if wait.For(ctx, lookAgain) != nil || t.drive.Now() >= t.drive.Until {
			return errOver
		}
		if taken == takenBusy || t.drive.seen() != seen {
			return nil
		}
	}
}

func (t *thread) random() float64 {
	t.drawn++
	return load.DrawUnit(t.key, t.drawn)
}

func (t *thread) run(ctx context.Context) error {
	for ctx.Err() == nil {
		var err error
		if t.Operation.Moves() {
			err = t.oneFile(ctx)
		} else {
			err = t.one(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// timed does one operation when it is due, and reports whether the run goes on.
func (t *thread) timed(ctx context.Context, what Operation, do func() (int64, error)) bool {
	due, ok := t.drive.next(ctx, t.index)
	if !ok {
		return false
	}
	begin := t.drive.Now()
	if due == 0 {
		due = begin
	}
	bytes, err := do()
	r := Record{Operation: what, Due: due, Begin: begin, End: t.drive.Now(), Bytes: bytes}
	if err != nil {
		r.Bytes, r.Failed = 0, class(err)
	}
	return t.drive.Report(r)
}

// oneFile opens a file and reads or writes it.
func (t *thread) oneFile(ctx context.Context) error {
	w := want{there: true, whole: t.Random || t.Reads > 0, alone: !(t.Random && t.Shared), inOrder: t.InOrder, random: t.random, cursor: t.cursor}
	seen := t.drive.seen()
	n := t.Tree.take(t.Tree.files, w, nil)
	if n < 0 {
		return t.without(ctx, n, seen)
	}
	written := false // from begin to end
	defer func() {
		t.Tree.release(&t.Tree.files[n], func(s *state) {
			written = written && !s.whole
			s.whole = s.whole || written
		})
		if written {
			t.drive.change()
		}
	}()
	flags, err := t.Access.openFlags()
	if err != nil {
		return err
	}
	mode := os.O_RDWR
	if t.Reads == 100 {
		mode = os.O_RDONLY
	}
	f, err := os.OpenFile(t.Tree.file(n), mode|flags, 0)
	if err != nil {
		return fmt.Errorf("open a file of %s: %w", t.Name, err)
	}
	defer f.Close()
	size := t.Tree.Size(n)
	if t.Random {
		for range t.StopAfter {
			bytes := min(draw(t.Sizes, t.random()), size)
			at := int64(t.random()*float64(size/bytes)) * bytes // a multiple of the size that it moves
			if !t.move(ctx, f, at, bytes) {
				return errOver
			}
		}
	} else {
		for at := int64(0); at < size; {
			bytes := min(draw(t.Sizes, t.random()), size-at)
			if !t.move(ctx, f, at, bytes) {
				return errOver
			}
			at += bytes
		}
		written = true
	}
	if t.Access.Flush {
		return f.Sync()
	}
	return nil
}

func (t *thread) move(ctx context.Context, f *os.File, at, bytes int64) bool {
	what := Write
	if t.Reads == 100 || t.Reads > 0 && 100*t.random() < t.Reads {
		what = Read
	}
	if what == Write {
		data := t.buffer.next(bytes) // before the operation begins
		return t.timed(ctx, what, func() (int64, error) {
			n, err := f.WriteAt(data, at)
			return int64(n), err
		})
	}
	return t.timed(ctx, what, func() (int64, error) {
		n, err := f.ReadAt(t.buffer.room(bytes), at)
		if errors.Is(err, io.EOF) && int64(n) == bytes {
			err = nil
		}
		return int64(n), err
	})
}

// one does an operation on a name.
func (t *thread) one(ctx context.Context) error {
	tree := t.Tree
	list, path := tree.files, tree.file
	w := want{there: true, inOrder: t.InOrder, random: t.random, cursor: t.cursor}
	var fits func(int) bool
	var after func(*state)
	do := func(string) error { return nil }
	switch t.Operation {
	case GetAttr:
		do = func(p string) error { _, err := os.Lstat(p); return err }
	case SetAttr:
		do = func(p string) error { now := time.Now(); return os.Chtimes(p, now, now) }
	case Reach:
		do = accessible
	case Create:
		w.there, w.alone, fits = false, true, tree.hasFolder
		do, after = createEmpty, func(s *state) { *s = state{there: true, users: s.users} }
	case Delete:
		w.alone, do, after = true, os.Remove, func(s *state) { *s = state{users: s.users} }
	case MakeDir:
		list, path = tree.folders, tree.folder
		w.there, w.alone, fits = false, true, tree.hasParent
		do, after = func(p string) error { return os.Mkdir(p, 0o700) }, func(s *state) { s.there = true }
	case RmDir:
		list, path = tree.folders, tree.folder
		w.alone, fits = true, tree.childless
		do, after = os.Remove, func(s *state) { s.there = false }
	}
	seen := t.drive.seen()
	n := tree.take(list, w, fits)
	if n < 0 {
		return t.without(ctx, n, seen)
	}
	var failed error
	on := t.timed(ctx, t.Operation, func() (int64, error) {
		failed = do(path(n))
		return 0, failed
	})
	if !on || failed != nil {
		after = nil
	}
	tree.release(&list[n], after)
	if after != nil {
		t.drive.change()
	}
	if !on {
		return errOver
	}
	return nil
}

func createEmpty(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}
