package ioengine

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// allocate gives a range of a file its space; keepSize leaves the length of the file as it is.
func (f *file) allocate(offset, size int64, keepSize bool) int32 {
	mode := uint32(0)
	if keepSize {
		mode = unix.FALLOC_FL_KEEP_SIZE
	}
	for {
		err := unix.Fallocate(f.fd, mode, offset, size)
		switch {
		case err == nil:
			return wholeSize
		case !errors.Is(err, unix.EINTR):
			return resultOf(0, err)
		}
	}
}

// splicer moves data between a file and memory through a pipe, as fio's engine splice does: what is read goes to the pipe by
// reference and is copied from there once; what is written is given to the pipe by reference.
type splicer struct {
	in, out  int  // ends of the pipe: what comes out, what goes in
	capacity int  // bytes
	dirty    bool // an error left something in the pipe, which belongs to no other operation
}

const splicePipeBytes = 1 << 20

func newSplicer() (*splicer, error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("make a pipe for splice: %w", err)
	}
	s := &splicer{in: ends[0], out: ends[1]}
	// A larger pipe saves calls; without it the smaller one does.
	_, _ = unix.FcntlInt(uintptr(s.out), unix.F_SETPIPE_SZ, splicePipeBytes)
	n, err := unix.FcntlInt(uintptr(s.out), unix.F_GETPIPE_SZ, 0)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("size of a pipe: %w", err), s.close())
	}
	s.capacity = n
	return s, nil
}

// newSpliceBackend returns the back end of a worker whose lane uses splice. Such a lane has one operation at a time.
func newSpliceBackend(w *worker) (backend, error) {
	s, err := newSplicer()
	if err != nil {
		return nil, err
	}
	b := newPsyncBackend(w.slots, kindSplice)
	b.perform = s.perform
	return &spliceBackend{b, s}, nil
}

type spliceBackend struct {
	*psyncBackend
	splicer *splicer
}

func (b *spliceBackend) close() error { return b.splicer.close() }

func (s *splicer) close() error { return errors.Join(unix.Close(s.in), unix.Close(s.out)) }

// perform does one operation.
func (s *splicer) perform(of *slot) int32 {
	switch of.kind {
	case opRead:
		return s.move(of, s.read)
	case opWrite:
		return s.move(of, s.write)
	}
	return perform(of)
}

// move does an operation in parts that fit the pipe. What an error leaves in the pipe is thrown away with it; where there is
// no new one (too many open files), operations fail until there is.
func (s *splicer) move(of *slot, part func(fd int, offset int64, buffer []byte) (int, error)) int32 {
	if s.dirty {
		if err := s.renew(); err != nil {
			return resultOf(0, err)
		}
	}
	done := int64(0)
	for done < of.size {
		n, err := part(of.file.fd, of.offset+done, of.buffer[done:min(of.size, done+int64(s.capacity))])
		done += int64(n)
		if err != nil {
			s.dirty = true
			return resultOf(0, err)
		}
		if n == 0 {
			break
		}
	}
	return int32(done)
}

// renew takes another pipe.
func (s *splicer) renew() error {
	again, err := newSplicer()
	if err != nil {
		return err
	}
	_ = s.close() // only pipes, of which nothing is wanted any more
	*s = *again
	return nil
}

// read brings a part of a file into the pipe and from there into memory.
func (s *splicer) read(fd int, offset int64, buffer []byte) (int, error) {
	n, err := retry(func() (int64, error) {
		return unix.Splice(fd, &offset, s.out, nil, len(buffer), unix.SPLICE_F_MOVE)
	})
	if err != nil || n == 0 {
		return 0, err
	}
	for at := int64(0); at < n; {
		got, err := retry(func() (int64, error) {
			k, err := unix.Read(s.in, buffer[at:n])
			return int64(k), err
		})
		if err != nil {
			return 0, err
		}
		at += got
	}
	return int(n), nil
}

// write gives memory to the pipe and moves it from there to a file. It returns once the file has taken all of it, so that
// the memory can be used again: what the page cache keeps, it has copied.
func (s *splicer) write(fd int, offset int64, buffer []byte) (int, error) {
	v := unix.Iovec{Base: &buffer[0]}
	v.SetLen(len(buffer))
	n, err := retry(func() (int64, error) {
		k, err := unix.Vmsplice(s.out, []unix.Iovec{v}, 0)
		return int64(k), err
	})
	if err != nil {
		return 0, err
	}
	for left := n; left > 0; {
		moved, err := retry(func() (int64, error) {
			return unix.Splice(s.in, nil, fd, &offset, int(left), unix.SPLICE_F_MOVE)
		})
		if err != nil {
			return 0, err
		}
		if moved == 0 {
			return 0, unix.EIO
		}
		left -= moved
	}
	return int(n), nil
}

func retry(call func() (int64, error)) (int64, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
