package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// copyChunkBytes is how much is copied between two checks of the context.
const copyChunkBytes = 8 << 20

// makeSparse makes a file with a size but without blocks.
func makeSparse(path string, sizeBytes int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Truncate(sizeBytes)
}

// copyDisk makes path a copy of source with sizeBytes, which is at least the size of source: it shares blocks if the file
// system can, and otherwise copies the data without the holes.
func copyDisk(ctx context.Context, path, source string, sizeBytes int64) error {
	in, err := os.OpenFile(source, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := unix.IoctlFileClone(int(out.Fd()), int(in.Fd())); err != nil {
		// Whatever the reason (another file system, no support), the copy shows whether it is possible at all.
		if err := copySparse(ctx, out, in); err != nil {
			return err
		}
	}
	if err := out.Truncate(sizeBytes); err != nil {
		return err
	}
	return out.Close()
}

// copySparse copies the data of in without its holes.
func copySparse(ctx context.Context, out, in *os.File) error {
	for offset := int64(0); ; {
		start, err := unix.Seek(int(in.Fd()), offset, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return nil // only a hole up to the end
		}
		if err != nil {
			return fmt.Errorf("find data: %w", err)
		}
		end, err := unix.Seek(int(in.Fd()), start, unix.SEEK_HOLE)
		if err != nil {
			return fmt.Errorf("find end of data: %w", err)
		}
		if err := copyRange(ctx, out, in, start, end); err != nil {
			return err
		}
		offset = end
	}
}

// copyRange copies [start, end). The kernel moves the data if it can.
func copyRange(ctx context.Context, out, in *os.File, start, end int64) error {
	byKernel := true
	var buffer []byte
	for start < end {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		want := min(end-start, copyChunkBytes)
		if byKernel {
			from, to := start, start
			n, err := unix.CopyFileRange(int(in.Fd()), &from, int(out.Fd()), &to, int(want), 0)
			if err == nil && n > 0 {
				start += int64(n)
				continue
			}
			if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EIO) {
				return &os.PathError{Op: "copy to", Path: out.Name(), Err: err}
			}
			byKernel = false
		}
		if buffer == nil {
			buffer = make([]byte, copyChunkBytes)
		}
		n, err := in.ReadAt(buffer[:want], start)
		if n == 0 && err != nil {
			if errors.Is(err, io.EOF) {
				return nil // the file became shorter
			}
			return err
		}
		if _, err := out.WriteAt(buffer[:n], start); err != nil {
			return err
		}
		start += int64(n)
	}
	return nil
}

// canShareBlocks reports whether copies in dir share blocks.
func canShareBlocks(dir string) bool {
	var files [2]*os.File
	for i := range files {
		fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return false
		}
		files[i] = os.NewFile(uintptr(fd), "probe")
		defer files[i].Close()
	}
	if _, err := files[0].Write(make([]byte, 4096)); err != nil {
		return false
	}
	return unix.IoctlFileClone(int(files[1].Fd()), int(files[0].Fd())) == nil
}

func describeCopies(dir string) string {
	if canShareBlocks(dir) {
		return "reflink: clones and snapshots share blocks with their source"
	}
	return "full: clones and snapshots copy all data, without holes (the file system has no reflink)"
}
