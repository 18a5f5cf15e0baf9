package blockdev

import (
	"io"
	"unsafe"
)

// blockAlign suits direct access to every device whose blocks are not larger than a page.
const blockAlign = 4096

// alignedBuffer returns memory that is valid for direct access.
func alignedBuffer(length int) []byte {
	b := make([]byte, length+blockAlign)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) % blockAlign)
	return b[skip : skip+length : skip+length]
}

// alignedReader reads whole aligned blocks, so that its source may be open for direct access, which reads from the device
// and not from the page cache.
type alignedReader struct {
	from  io.ReaderAt
	size  int64
	align int64
}

func (r alignedReader) ReadAt(b []byte, offset int64) (int, error) {
	if offset >= r.size {
		return 0, io.EOF
	}
	start := offset / r.align * r.align
	end := min((offset+int64(len(b))+r.align-1)/r.align*r.align, r.size)
	buffer := alignedBuffer(int(end - start))
	if err := readFull(r.from, buffer, start); err != nil {
		return 0, err
	}
	n := copy(b, buffer[offset-start:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}
