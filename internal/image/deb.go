package image

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

const (
	arMagic       = "!<arch>\n"
	arHeaderBytes = 60
	// unpackedBytesMax bounds the unpacked size of a package: Debian's largest kernel has about 600 MB.
	unpackedBytesMax = 2 << 30
)

// errUnpacked ends reading of data that exceeds the bound.
var errUnpacked = fmt.Errorf("it unpacks to more than %d bytes", int64(unpackedBytesMax))

// openMember finds a member of a Debian package (deb(5): an ar archive) and returns it unpacked: "data.tar" or
// "control.tar", with any compression. The caller must close the result, and still owns r.
func openMember(r io.Reader, member string) (io.ReadCloser, error) {
	magic := make([]byte, len(arMagic))
	if _, err := io.ReadFull(r, magic); err != nil || string(magic) != arMagic {
		return nil, errors.New("not a Debian package")
	}
	for {
		header := make([]byte, arHeaderBytes)
		if _, err := io.ReadFull(r, header); err != nil {
			return nil, fmt.Errorf("it has no %s", member)
		}
		name := strings.TrimRight(strings.TrimRight(string(header[:16]), " "), "/")
		size, err := strconv.ParseInt(strings.TrimSpace(string(header[48:58])), 10, 64)
		if err != nil || size < 0 || string(header[58:]) != "`\n" {
			return nil, errors.New("its archive is damaged")
		}
		if suffix, ok := strings.CutPrefix(name, member); ok {
			return unpack(io.LimitReader(r, size), suffix)
		}
		if _, err := io.CopyN(io.Discard, r, size+size%2); err != nil {
			return nil, errors.New("it is cut off")
		}
	}
}

// unpack decompresses according to the ending of a file's name, within bounds.
func unpack(r io.Reader, suffix string) (io.ReadCloser, error) {
	bounded := func(r io.Reader) io.ReadCloser { return io.NopCloser(&boundedReader{r: r, left: unpackedBytesMax}) }
	switch suffix {
	case "":
		return bounded(r), nil
	case ".gz":
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, err
		}
		return bounded(z), nil
	case ".xz":
		z, err := xz.NewReader(r)
		if err != nil {
			return nil, err
		}
		return bounded(z), nil
	case ".zst":
		z, err := zstd.NewReader(r, zstd.WithDecoderMaxMemory(unpackedBytesMax), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		return &closing{&boundedReader{r: z, left: unpackedBytesMax}, z.Close}, nil
	}
	return nil, fmt.Errorf("it is compressed as %q, which is not supported", suffix)
}

type closing struct {
	io.Reader
	end func()
}

func (c *closing) Close() error {
	c.end()
	return nil
}

// boundedReader ends with errUnpacked; an io.LimitReader would report the end of the file.
type boundedReader struct {
	r    io.Reader
	left int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errUnpacked
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// eachFile calls do with every regular file of a tar archive, by its path without "./". do may read the file.
func eachFile(r io.Reader, do func(name string, size int64, r io.Reader) error) error {
	t := tar.NewReader(r)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if err := do(strings.TrimPrefix(h.Name, "./"), h.Size, t); err != nil {
			return err
		}
	}
}
