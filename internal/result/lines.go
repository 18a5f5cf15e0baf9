package result

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/braggdev/bragg/internal/result/frame"
)

// eachLine is called with every whole line, without its end. It returns false to end the iteration, and an error if the line is
// invalid.
type eachLine func(line []byte) (more bool, err error)

// lines reads a file with the function for its format.
func (b *Bundle) lines(name string, scan func(*os.File, eachLine) (int64, error), each eachLine) error {
	f, err := b.openStream(name)
	if f == nil || err != nil {
		return err
	}
	defer f.Close()
	_, err = scan(f, each)
	return b.judge(name, err)
}

// scanPlain returns the offset after the last good line, and frame.ErrCut if the file ends inside a line.
func scanPlain(r *os.File, each eachLine) (good int64, err error) {
	br := bufio.NewReaderSize(r, 256<<10)
	for {
		line, err := readLine(br)
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return good, nil
		}
		if errors.Is(err, io.EOF) {
			return good, frame.ErrCut
		}
		if err != nil {
			return good, err
		}
		more, err := each(line[:len(line)-1])
		if err != nil {
			// After a power loss, blocks that were never written read as zeros.
			if zeros, zerosErr := frame.OnlyZeros(io.MultiReader(bytes.NewReader(line[:len(line)-1]), br)); zerosErr == nil && zeros {
				return good, frame.ErrCut
			}
			return good, fmt.Errorf("%w: line at byte %d: %w", ErrDamaged, good, err)
		}
		good += int64(len(line))
		if !more {
			return good, nil
		}
	}
}

func readLine(br *bufio.Reader) ([]byte, error) {
	line, err := br.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	long := bytes.Clone(line)
	for errors.Is(err, bufio.ErrBufferFull) {
		if len(long) > lineBytesMax {
			return nil, fmt.Errorf("%w: line longer than %d bytes", ErrDamaged, lineBytesMax)
		}
		line, err = br.ReadSlice('\n')
		long = append(long, line...)
	}
	return long, err
}

// scanFramed returns the offset after the last good frame, and frame.ErrCut if the file ends inside a frame.
func scanFramed(f *os.File, each eachLine) (good int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	decoder, err := frame.NewDecoder()
	if err != nil {
		return 0, err
	}
	defer decoder.Close()
	scanner := frame.Scanner{File: f, Size: info.Size()}
	var packed, text []byte
	for {
		offset, length, err := scanner.Next()
		if errors.Is(err, io.EOF) {
			return good, nil
		}
		if err != nil {
			return good, err
		}
		packed = frame.Resize(packed, int(length))
		if _, err := f.ReadAt(packed, offset); err != nil {
			return good, err
		}
		if text, err = decoder.DecodeAll(packed, text[:0]); err != nil {
			return good, fmt.Errorf("%w: frame at byte %d: %w", ErrDamaged, offset, err)
		}
		more, err := frame.Lines(text, each)
		if err != nil {
			return good, fmt.Errorf("%w: frame at byte %d: %w", ErrDamaged, offset, err)
		}
		good = offset + length
		if !more {
			return good, nil
		}
	}
}

// openStream opens one of the appended files. It returns nil without an error if the file is missing from an unsealed bundle,
// whose writer may have died before creating it.
func (b *Bundle) openStream(name string) (*os.File, error) {
	f, err := b.openRegular(name)
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, fs.ErrNotExist) && b.seal == nil:
		return nil, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read %q: %w: %s is missing", b.dir, ErrDamaged, name)
	}
	return nil, fmt.Errorf("read %q: %w", b.dir, err)
}

// judge ignores the cut that a dead writer leaves in an unsealed bundle.
func (b *Bundle) judge(name string, err error) error {
	switch {
	case err == nil, errors.Is(err, frame.ErrCut) && b.seal == nil:
		return nil
	case errors.Is(err, frame.ErrCut):
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return fmt.Errorf("read %q: %s: %w", b.dir, name, err)
}

// cutTails cuts off what a dead writer left partly written, and reads which series were defined.
func (w *Writer) cutTails() error {
	good, err := scanPlain(w.events, func([]byte) (bool, error) { return true, nil })
	if err = cutAt(w.events, good, err); err != nil {
		return err
	}
	good, err = scanFramed(w.intervals.file, func([]byte) (bool, error) { return true, nil })
	if err = cutAt(w.intervals.file, good, err); err != nil {
		return err
	}
	r := sampleReader{series: map[int]seriesDefinition{}}
	good, err = scanFramed(w.samples.file, func(line []byte) (bool, error) {
		return r.line(line, func(Sample, error) bool { return true })
	})
	for number, d := range r.series {
		w.series[seriesKey(d.Name, d.Labels)] = number
	}
	return cutAt(w.samples.file, good, err)
}

func cutAt(f *os.File, good int64, err error) error {
	if errors.Is(err, frame.ErrCut) || errors.Is(err, ErrDamaged) {
		return f.Truncate(good)
	}
	return err
}
