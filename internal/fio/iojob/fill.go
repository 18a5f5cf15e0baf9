package iojob

import (
	"errors"
	"io"
	"os"
)

// spareBytes is how much longer than the free space a file is made that fills its file system, so that space freed by
// others in the meantime is filled too.
const spareBytes = int64(64) << 20

// space returns a length too large for any file at path.
func space(path string) (int64, error) {
	free, known := freeBytes(path)
	if !known {
		return 0, errors.New("how much space is free is not known here: fill_device needs a size")
	}
	return (free + spareBytes) >> 20 << 20, nil
}

// readAll reads a file into the page cache.
func readAll(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, struct{ io.Reader }{f})
	return errors.Join(err, f.Close())
}
