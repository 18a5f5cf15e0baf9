package textio

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// LineReader reads lines of bounded length.
type LineReader struct {
	reader   *bufio.Reader
	maxBytes int
	line     []byte
}

// NewLineReader reads lines of at most maxBytes bytes.
func NewLineReader(r io.Reader, maxBytes int) *LineReader {
	return &LineReader{reader: bufio.NewReaderSize(r, 64<<10), maxBytes: maxBytes}
}

// Next returns the next line without its end, valid until the next call. It returns io.EOF after the last line, bufio.ErrTooLong
// for a line beyond the bound, and the line together with io.ErrUnexpectedEOF if the input ends without a line feed.
func (l *LineReader) Next() ([]byte, error) {
	l.line = l.line[:0]
	for {
		part, err := l.reader.ReadSlice('\n')
		l.line = append(l.line, part...)
		switch {
		case len(l.line) > l.maxBytes:
			return nil, bufio.ErrTooLong
		case errors.Is(err, bufio.ErrBufferFull):
		case err == nil:
			return bytes.TrimSuffix(l.line[:len(l.line)-1], []byte{'\r'}), nil
		case errors.Is(err, io.EOF) && len(l.line) > 0:
			return l.line, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}

// Rest is the input after the lines that were read.
func (l *LineReader) Rest() io.Reader { return l.reader }
