package fiolog

import (
	"errors"
	"fmt"
	"os"
)

// file is one log with its buffered text. Only the writer accesses it.
type file struct {
	path    string
	f       *os.File
	text    []byte
	flushAt int
	err     error // the error that ended it
}

// openFile opens a log. fio truncates logs of one clone and appends to shared ones.
func openFile(path string, shared bool) (*file, error) {
	mode := os.O_TRUNC
	if shared {
		mode = os.O_APPEND
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|mode, 0o644)
	if err != nil {
		return nil, fmt.Errorf("create log: %w", err)
	}
	return &file{path: path, f: f}, nil
}

// flush writes the buffered text. It returns the error that ends the log, once.
func (f *file) flush() error {
	if len(f.text) == 0 {
		return nil
	}
	text := f.text
	f.text = f.text[:0]
	if f.err != nil {
		return nil
	}
	if _, err := f.f.Write(text); err != nil {
		f.err = fmt.Errorf("write log %q, which ends here: %w", f.path, unwrapPath(err))
		return f.err
	}
	return nil
}

// unwrapPath removes the path from an error if the caller's text names it already.
func unwrapPath(err error) error {
	var e *os.PathError
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

// close returns the error that ended the log, or the error of closing it.
func (f *file) close() error {
	err := f.f.Close()
	if f.err != nil {
		return f.err
	}
	return err
}
