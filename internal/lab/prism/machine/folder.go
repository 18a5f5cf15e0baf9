package machine

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Folder is the implementation of state.Disks: a file for each id, with holes where nothing was written.
type Folder string

// copyBlock is the unit in which holes are kept.
const copyBlock = 64 << 10

// Path is where the contents of an id are.
func (f Folder) Path(id string) string { return filepath.Join(string(f), filepath.Base(id)) }

// Create makes an empty disk.
func (f Folder) Create(id string, sizeBytes int64) error {
	file, err := f.open(id)
	if err != nil {
		return err
	}
	return closing(file, file.Truncate(sizeBytes))
}

func (f Folder) open(id string) (*os.File, error) {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return nil, err
	}
	return os.OpenFile(f.Path(id), os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
}

func closing(file *os.File, err error) error {
	if e := file.Close(); err == nil {
		err = e
	}
	return err
}

// Copy makes or replaces a disk with the contents of another.
func (f Folder) Copy(from, to string, sizeBytes int64) error {
	source, err := os.Open(f.Path(from))
	if err != nil {
		return err
	}
	defer source.Close()
	info, err := source.Stat()
	if err != nil {
		return err
	}
	file, err := f.open(to)
	if err != nil {
		return err
	}
	err = eachExtent(source, info.Size(), func(offset, length int64) error {
		return copyExtent(file, source, offset, length)
	})
	if err == nil {
		err = file.Truncate(max(sizeBytes, info.Size()))
	}
	return closing(file, err)
}

// copyExtent copies a part without the blocks that are zero.
func copyExtent(to, from *os.File, offset, length int64) error {
	block, zero := make([]byte, copyBlock), make([]byte, copyBlock)
	for length > 0 {
		n, err := from.ReadAt(block[:min(length, copyBlock)], offset)
		if n == 0 {
			if err == io.EOF {
				return nil
			}
			return err
		}
		if !bytes.Equal(block[:n], zero[:n]) {
			if _, err := to.WriteAt(block[:n], offset); err != nil {
				return err
			}
		}
		offset, length = offset+int64(n), length-int64(n)
	}
	return nil
}

// Write makes or replaces an image.
func (f Folder) Write(id string, r io.Reader) (int64, string, error) {
	file, err := f.open(id)
	if err != nil {
		return 0, "", err
	}
	sum := sha256.New()
	size, err := io.Copy(io.MultiWriter(file, sum), r)
	if err := closing(file, err); err != nil {
		_ = f.Remove(id)
		return 0, "", fmt.Errorf("store image: %w", err)
	}
	return size, hex.EncodeToString(sum.Sum(nil)), nil
}

// Remove removes what may be there.
func (f Folder) Remove(id string) error {
	if err := os.Remove(f.Path(id)); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}
