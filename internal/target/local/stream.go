package local

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/target"
)

// A disk is transferred to another machine as a sequence of pieces, each with offset and length (big endian, 8 and 4 bytes)
// before the data; holes are left out. A piece of length 0 marks the end; without it, the copy is incomplete.
const (
	pieceBytesMax  = 1 << 20
	pieceHeadBytes = 12
)

// ExportDisk writes the current data of a VM's disk to w.
func (ms *machines) ExportDisk(ctx context.Context, tag target.Tag, vm target.VM, index int, w io.Writer) error {
	path, size, err := ms.diskOf(tag, vm, index)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	out := bufio.NewWriterSize(w, pieceBytesMax+pieceHeadBytes)
	buffer := make([]byte, pieceBytesMax)
	for offset := int64(0); offset < size; {
		start, err := unix.Seek(int(f.Fd()), offset, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break // only a hole up to the end
		}
		if err != nil {
			return fmt.Errorf("find data: %w", err)
		}
		end, err := unix.Seek(int(f.Fd()), start, unix.SEEK_HOLE)
		if err != nil {
			return fmt.Errorf("find end of data: %w", err)
		}
		for start < end {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			n, err := f.ReadAt(buffer[:min(end-start, pieceBytesMax)], start)
			if n == 0 {
				return fmt.Errorf("read disk: %w", err)
			}
			if err := writePiece(out, start, buffer[:n]); err != nil {
				return err
			}
			start += int64(n)
		}
		offset = end
	}
	if err := writePiece(out, size, nil); err != nil {
		return err
	}
	return out.Flush()
}

func writePiece(w io.Writer, offset int64, data []byte) error {
	var head [pieceHeadBytes]byte
	binary.BigEndian.PutUint64(head[:8], uint64(offset))
	binary.BigEndian.PutUint32(head[8:], uint32(len(data)))
	if _, err := w.Write(head[:]); err != nil {
		return err
	}
	_, err := w.Write(data)
	return err
}

// ImportDisk fills the disk of a powered-off VM, which was never written to, with the output of ExportDisk of another
// machine. It returns once the data is on the disk or in the page cache.
func (ms *machines) ImportDisk(ctx context.Context, tag target.Tag, vm target.VM, index int, r io.Reader) error {
	path, size, err := ms.diskOf(tag, vm, index)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReaderSize(r, pieceBytesMax)
	buffer := make([]byte, pieceBytesMax)
	for {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		var head [pieceHeadBytes]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return fmt.Errorf("receive disk: %w", err)
		}
		offset, length := binary.BigEndian.Uint64(head[:8]), int64(binary.BigEndian.Uint32(head[8:]))
		if length == 0 {
			return f.Close()
		}
		if length > pieceBytesMax || offset > uint64(size) || int64(offset)+length > size {
			return fmt.Errorf("receive disk: a piece of %d bytes at %d is outside of a disk of %d", length, offset, size)
		}
		if _, err := io.ReadFull(in, buffer[:length]); err != nil {
			return fmt.Errorf("receive disk: %w", err)
		}
		if _, err := f.WriteAt(buffer[:length], int64(offset)); err != nil {
			return err
		}
	}
}

// diskOf returns the file of a VM's disk and its size.
func (ms *machines) diskOf(tag target.Tag, vm target.VM, index int) (string, int64, error) {
	m, err := ms.find(tag, vm.ID)
	if err != nil {
		return "", 0, fmt.Errorf("find vm %q: %w", vm.Name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ms.usable(m); err != nil {
		return "", 0, fmt.Errorf("use vm %q: %w", vm.Name, err)
	}
	if index < 0 || index >= len(m.record.VM.Disks) {
		return "", 0, fmt.Errorf("find disk %d of vm %q: it has %d", index, vm.Name, len(m.record.VM.Disks))
	}
	d := m.record.VM.Disks[index]
	return d.Path, d.SizeBytes, nil
}
