package iolog

import (
	"bufio"
	"io"
	"strconv"
)

// Writer writes a text log during a run. It is for one goroutine.
type Writer struct {
	out     *bufio.Writer
	names   []string
	timed   bool
	waited  int64 // nanoseconds of waits of version 2
	scratch []byte
}

const writerBytes = 1 << 20

// NewWriter writes the header of version 2 or 3, and adds and opens files. Actions name files by their index.
func NewWriter(to io.Writer, version int, files []string) (*Writer, error) {
	w := &Writer{out: bufio.NewWriterSize(to, writerBytes), names: files, timed: version != 2}
	header := headerStart + "2" + headerEnd + "\n"
	if w.timed {
		header = headerStart + "3" + headerEnd + "\n"
	}
	if _, err := w.out.WriteString(header); err != nil {
		return nil, err
	}
	for _, kind := range []Kind{addFile, openFile} {
		for i := range files {
			if err := w.Write(&Action{File: int32(i), Kind: kind}); err != nil {
				return nil, err
			}
		}
	}
	return w, nil
}

// Write adds a line. Actions must be in the order of their times, which are nanoseconds.
func (w *Writer) Write(a *Action) error {
	b := w.scratch[:0]
	if w.timed {
		b = strconv.AppendInt(b, a.Nanos/1000, 10)
		b = append(b, ' ')
	} else if wait := (a.Nanos - w.waited) / 1000; wait >= waitMicrosMin {
		w.waited += wait * 1000
		b = append(b, w.names[a.File]...)
		b = append(b, " wait "...)
		b = strconv.AppendInt(b, wait, 10)
		b = append(b, " 0\n"...)
	}
	b = append(b, w.names[a.File]...)
	b = append(b, ' ')
	b = append(b, a.Kind.String()...)
	if a.Kind <= DataSync {
		b = append(b, ' ')
		b = strconv.AppendInt(b, a.Offset, 10)
		b = append(b, ' ')
		b = strconv.AppendInt(b, a.Size, 10)
	}
	w.scratch = append(b, '\n')
	_, err := w.out.Write(w.scratch)
	return err
}

// Close writes the closing of files, at this time, and flushes to the writer below.
func (w *Writer) Close(nanos int64) error {
	for i := range w.names {
		if err := w.Write(&Action{Nanos: nanos, File: int32(i), Kind: closeFile}); err != nil {
			return err
		}
	}
	return w.out.Flush()
}
