package result

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// A framed file is a sequence of independent Zstandard frames (RFC 8878), each with a content checksum and each ending at the end
// of a line. Any zstd program reads the whole file; a file that was cut loses only the frame that was cut. One writer appends one
// frame with one write call.

const (
	// frameTextMax bounds the text of one frame, so that a hostile file cannot make a reader allocate without bound.
	frameTextMax = 64 << 20
	// frameBytesMax bounds a frame on disk; incompressible text grows a little.
	frameBytesMax = frameTextMax + frameTextMax/16

	zstdMagic       = 0xFD2FB528
	zstdHeaderMax   = 18 // magic, descriptor, window, dictionary id, content size
	zstdBlockRLE    = 1
	zstdBlockHeader = 3
)

var (
	// errCut means that the file ends inside a frame or a line, as after the death of its writer.
	errCut = errors.New("file ends in the middle")
	// ErrDamaged means that a file of the bundle has damage that a writer, even one that died, does not cause.
	ErrDamaged = errors.New("damaged bundle")
)

func newFrameEncoder() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true),
		zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithWindowSize(4<<20))
}

func newFrameDecoder() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(frameTextMax),
		zstd.WithDecoderMaxWindow(frameTextMax))
}

// frameScanner finds the borders of frames without decoding them, by walking their block headers.
type frameScanner struct {
	r      io.ReaderAt
	size   int64
	offset int64
}

// next returns the place of the next frame, io.EOF after the last, errCut if the file ends inside a frame, and ErrDamaged if no
// frame begins there.
func (s *frameScanner) next() (offset, length int64, err error) {
	if s.offset == s.size {
		return 0, 0, io.EOF
	}
	var head [zstdHeaderMax]byte
	n, err := s.read(head[:], s.offset)
	if err != nil {
		return 0, 0, err
	}
	var h zstd.Header
	if n < 4 || binary.LittleEndian.Uint32(head[:]) != zstdMagic {
		return 0, 0, s.notAFrame(head[:n])
	}
	if err := h.Decode(head[:n]); err != nil {
		if n < zstdHeaderMax {
			return 0, 0, errCut
		}
		return 0, 0, fmt.Errorf("%w: frame at byte %d: %w", ErrDamaged, s.offset, err)
	}
	end := s.offset + int64(h.HeaderSize)
	for last := false; !last; {
		var b [zstdBlockHeader]byte
		if n, err := s.read(b[:], end); err != nil {
			return 0, 0, err
		} else if n < len(b) {
			return 0, 0, errCut
		}
		word := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16
		last = word&1 == 1
		size := int64(word >> 3)
		if word>>1&3 == zstdBlockRLE {
			size = 1
		}
		end += zstdBlockHeader + size
		if end-s.offset > frameBytesMax {
			return 0, 0, fmt.Errorf("%w: frame at byte %d: too large", ErrDamaged, s.offset)
		}
	}
	if h.HasCheckSum {
		end += 4
	}
	if end > s.size {
		return 0, 0, errCut
	}
	offset, length = s.offset, end-s.offset
	s.offset = end
	return offset, length, nil
}

// notAFrame distinguishes a cut (a few bytes of a frame's magic, or the zeros that a power loss leaves) from damage.
func (s *frameScanner) notAFrame(head []byte) error {
	magic := binary.LittleEndian.AppendUint32(nil, zstdMagic)
	if len(head) < 4 && string(head) == string(magic[:len(head)]) {
		return errCut
	}
	if zeros, err := onlyZeros(io.NewSectionReader(s.r, s.offset, s.size-s.offset)); err != nil {
		return err
	} else if zeros {
		return errCut
	}
	return fmt.Errorf("%w: no frame at byte %d", ErrDamaged, s.offset)
}

// read reads at most to the end of the file and returns the number of bytes read.
func (s *frameScanner) read(p []byte, at int64) (int, error) {
	if at >= s.size {
		return 0, nil
	}
	n, err := s.r.ReadAt(p[:min(int64(len(p)), s.size-at)], at)
	if err != nil && err != io.EOF {
		return n, err
	}
	return n, nil
}

func onlyZeros(r io.Reader) (bool, error) {
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
