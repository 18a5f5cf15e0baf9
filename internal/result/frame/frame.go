// Package frame reads and writes framed files: sequences of independent Zstandard frames (RFC 8878), each with a content checksum and
// each ending at the end of a line. Any zstd program reads the whole file; a file that was cut loses only the frame that was cut. One
// writer appends one frame with one write call. It does not know what is in the lines.
//
//	text ──NewEncoder──▶ file ──Scanner──▶ borders of frames ──NewDecoder, Lines──▶ lines
package frame

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

const (
	// TextMax bounds the text of one frame, so that a hostile file cannot make a reader allocate without bound.
	TextMax = 64 << 20
	// bytesMax bounds a frame on disk; incompressible text grows a little.
	bytesMax = TextMax + TextMax/16

	zstdMagic       = 0xFD2FB528
	zstdHeaderMax   = 18 // magic, descriptor, window, dictionary id, content size
	zstdBlockRLE    = 1
	zstdBlockHeader = 3
)

var (
	// ErrCut means that the file ends inside a frame or a line, as after the death of its writer.
	ErrCut = errors.New("file ends in the middle")
	// ErrDamaged means that a file of the bundle has damage that a writer, even one that died, does not cause.
	ErrDamaged = errors.New("damaged bundle")
)

// NewEncoder returns an encoder for EncodeAll.
func NewEncoder() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true),
		zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithWindowSize(4<<20))
}

// NewDecoder returns a decoder for DecodeAll.
func NewDecoder() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(TextMax),
		zstd.WithDecoderMaxWindow(TextMax))
}

// Scanner finds the borders of frames without decoding them, by walking their block headers.
type Scanner struct {
	File   io.ReaderAt
	Size   int64
	Offset int64 // of the next frame
}

// Next returns the place of the next frame, io.EOF after the last, ErrCut if the file ends inside a frame, and ErrDamaged if no
// frame begins there.
func (s *Scanner) Next() (offset, length int64, err error) {
	if s.Offset == s.Size {
		return 0, 0, io.EOF
	}
	var head [zstdHeaderMax]byte
	n, err := s.read(head[:], s.Offset)
	if err != nil {
		return 0, 0, err
	}
	var h zstd.Header
	if n < 4 || binary.LittleEndian.Uint32(head[:]) != zstdMagic {
		return 0, 0, s.notAFrame(head[:n])
	}
	if err := h.Decode(head[:n]); err != nil {
		if n < zstdHeaderMax {
			return 0, 0, ErrCut
		}
		return 0, 0, fmt.Errorf("%w: frame at byte %d: %w", ErrDamaged, s.Offset, err)
	}
	end := s.Offset + int64(h.HeaderSize)
	for last := false; !last; {
		var b [zstdBlockHeader]byte
		if n, err := s.read(b[:], end); err != nil {
			return 0, 0, err
		} else if n < len(b) {
			return 0, 0, ErrCut
		}
		word := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16
		last = word&1 == 1
		size := int64(word >> 3)
		if word>>1&3 == zstdBlockRLE {
			size = 1
		}
		end += zstdBlockHeader + size
		if end-s.Offset > bytesMax {
			return 0, 0, fmt.Errorf("%w: frame at byte %d: too large", ErrDamaged, s.Offset)
		}
	}
	if h.HasCheckSum {
		end += 4
	}
	if end > s.Size {
		return 0, 0, ErrCut
	}
	offset, length = s.Offset, end-s.Offset
	s.Offset = end
	return offset, length, nil
}

// notAFrame distinguishes a cut (a few bytes of a frame's magic, or the zeros that a power loss leaves) from damage.
func (s *Scanner) notAFrame(head []byte) error {
	magic := binary.LittleEndian.AppendUint32(nil, zstdMagic)
	if len(head) < 4 && string(head) == string(magic[:len(head)]) {
		return ErrCut
	}
	if zeros, err := OnlyZeros(io.NewSectionReader(s.File, s.Offset, s.Size-s.Offset)); err != nil {
		return err
	} else if zeros {
		return ErrCut
	}
	return fmt.Errorf("%w: no frame at byte %d", ErrDamaged, s.Offset)
}

// read reads at most to the end of the file and returns the number of bytes read.
func (s *Scanner) read(p []byte, at int64) (int, error) {
	if at >= s.Size {
		return 0, nil
	}
	n, err := s.File.ReadAt(p[:min(int64(len(p)), s.Size-at)], at)
	if err != nil && err != io.EOF {
		return n, err
	}
	return n, nil
}

// OnlyZeros reports whether the rest of a file is zeros, as after a power loss.
func OnlyZeros(r io.Reader) (bool, error) {
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Read(buf)
		for _, b := range buf[:n] {
			if b != 0 {
				return false, nil
			}
		}
		if err == io.EOF {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
}

// Lines calls each with every line of the text of a frame, until it returns false or an error.
func Lines(text []byte, each func(line []byte) (more bool, err error)) (bool, error) {
	for len(text) > 0 {
		end := bytes.IndexByte(text, '\n')
		if end < 0 {
			return true, errors.New("last line has no end")
		}
		if more, err := each(text[:end]); err != nil || !more {
			return more, err
		}
		text = text[end+1:]
	}
	return true, nil
}

// Resize returns p with another length; its content is undefined.
func Resize(p []byte, n int) []byte {
	if cap(p) < n {
		return make([]byte, n)
	}
	return p[:n]
}
