package pgbench

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/braggdev/bragg/internal/load/program"
)

// logs are the transaction logs of a running pgbench, one per thread. They are read while they grow, and what was read is freed.
type logs struct {
	config *config
	shift  int64 // from Unix time to the axis
	begun  int64 // when the last transaction began, on the axis
	files  []*logFile
}

type logFile struct {
	path  string
	file  *os.File // nil until pgbench has made it
	read  int64
	freed int64
	part  []byte // of a line
	last  int64  // end of its last transaction, on the axis

	thread thread
}

const (
	readBytes    = 256 << 10
	lineBytesMax = 4 << 10
	freeBytes    = 1 << 20 // a file is freed in steps of this size
)

func newLogs(folder string, pid int, c *config, shift int64) *logs {
	l := &logs{config: c, shift: shift}
	for i, t := range threads(c.clients, c.threads) {
		name := fmt.Sprintf("pgbench.%d", pid)
		if i > 0 {
			name += fmt.Sprintf(".%d", i)
		}
		l.files = append(l.files, &logFile{path: filepath.Join(folder, name), last: math.MinInt64, thread: t})
	}
	return l
}

// read passes on all lines that are complete.
func (l *logs) read(add func(program.Operation)) error {
	for _, f := range l.files {
		if err := l.readFile(f, add); err != nil {
			return fmt.Errorf("read %s: %w", filepath.Base(f.path), err)
		}
	}
	return nil
}

func (l *logs) readFile(f *logFile, add func(program.Operation)) error {
	if f.file == nil {
		file, err := os.OpenFile(f.path, os.O_RDWR, 0)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		f.file = file
	}
	buffer := make([]byte, readBytes)
	for {
		n, err := f.file.ReadAt(buffer, f.read)
		f.read += int64(n)
		if lineErr := l.lines(f, buffer[:n], add); lineErr != nil {
			return lineErr
		}
		if f.read-f.freed >= freeBytes {
			program.FreeBefore(f.file, f.read)
			f.freed = f.read
		}
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func (l *logs) lines(f *logFile, text []byte, add func(program.Operation)) error {
	for {
		end := bytes.IndexByte(text, '\n')
		if end < 0 {
			if f.part = append(f.part, text...); len(f.part) > lineBytesMax {
				return errors.New("line too long")
			}
			return nil
		}
		line := text[:end]
		if len(f.part) > 0 {
			line = append(f.part, line...)
		}
		client, t, err := parseTransaction(line, l.config.rate > 0)
		if err != nil {
			return err
		}
		if t.Kind >= len(l.config.scripts) {
			return fmt.Errorf("script %d of %d", t.Kind, len(l.config.scripts))
		}
		t.End += l.shift
		f.last = max(f.last, t.End)
		if f.thread.add(client, t); !t.Skipped && t.Failed == "" {
			l.begun = max(l.begun, t.End-t.Latency+t.Lag)
		}
		add(t)
		f.part, text = f.part[:0], text[end+1:]
	}
}

// complete is the time until which all threads have written their transactions.
func (l *logs) complete() int64 {
	least := int64(math.MaxInt64)
	for _, f := range l.files {
		least = min(least, f.last)
	}
	return least
}

// close closes and removes the files.
func (l *logs) close() {
	for _, f := range l.files {
		if f.file != nil {
			_ = f.file.Close()
		}
		_ = os.Remove(f.path)
	}
}
