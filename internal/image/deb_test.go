package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// debOf makes a package: members of an ar archive, in order.
func debOf(members ...[2]string) []byte {
	b := bytes.NewBufferString(arMagic)
	for _, m := range members {
		fmt.Fprintf(b, "%-16s%-12d%-6d%-6d%-8s%-10d`\n%s", m[0], 0, 0, 0, "100644", len(m[1]), m[1])
		if len(m[1])%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}

func tarOf(t testing.TB, files ...[2]string) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Name: f[0], Size: int64(len(f[1])), Mode: 0o644, Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, f[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func packed(t testing.TB, suffix, text string) string {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	switch suffix {
	case ".gz":
		w = gzip.NewWriter(&b)
	case ".xz":
		w, err = xz.NewWriter(&b)
	case ".zst":
		w, err = zstd.NewWriter(&b)
	default:
		return text
	}
	if err == nil {
		_, err = io.WriteString(w, text)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestOpenMember(t *testing.T) {
	t.Parallel()
	archive := tarOf(t, [2]string{"./boot/a", "hello"}, [2]string{"b", ""})
	for _, suffix := range []string{"", ".gz", ".xz", ".zst"} {
		deb := debOf([2]string{"debian-binary", "2.0\n"}, [2]string{"control.tar.xz", "odd"}, [2]string{"data.tar" + suffix, packed(t, suffix, archive)})
		r, err := openMember(bytes.NewReader(deb), "data.tar")
		if err != nil {
			t.Errorf("%q: %v", suffix, err)
			continue
		}
		var names []string
		err = eachFile(r, func(name string, size int64, r io.Reader) error {
			text, err := io.ReadAll(r)
			names = append(names, fmt.Sprintf("%s %d %s", name, size, text))
			return err
		})
		if want := []string{"boot/a 5 hello", "b 0 "}; err != nil || !slices.Equal(names, want) {
			t.Errorf("%q: got %q, %v", suffix, names, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		for _, cut := range []int{1, 20, 70, len(deb) - 30} {
			if _, err := parseKernel(bytes.NewReader(deb[:cut])); err == nil {
				t.Errorf("%q cut off after %d bytes is a kernel", suffix, cut)
			}
		}
	}
}

func TestInvalidPackages(t *testing.T) {
	t.Parallel()
	for want, deb := range map[string][]byte{
		"not a Debian package": []byte("PK\x03\x04 something else"),
		"no data.tar":          debOf([2]string{"debian-binary", "2.0\n"}),
		"not supported":        debOf([2]string{"data.tar.lzma", ""}),
		"damaged":              []byte(arMagic + strings.Repeat("x", arHeaderBytes)),
		"cut off":              debOf([2]string{"control.tar", strings.Repeat("x", 100)})[:90],
		"no kernel":            debOf([2]string{"data.tar", tarOf(t, [2]string{"usr/share/doc/x", "x"})}),
		"no modules":           debOf([2]string{"data.tar", tarOf(t, [2]string{"boot/vmlinuz-1", "x"})}),
		"two kernels":          debOf([2]string{"data.tar", tarOf(t, [2]string{"boot/vmlinuz-1", "x"}, [2]string{"boot/vmlinuz-2", "x"})}),
		"read module x.ko":     debOf([2]string{"data.tar", tarOf(t, [2]string{"lib/modules/1/x.ko", "no object"})}),
	} {
		if _, err := parseKernel(bytes.NewReader(deb)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// A small file that unpacks to something huge is refused, not swallowed.
func TestBounds(t *testing.T) {
	t.Parallel()
	r := &boundedReader{r: endless{}, left: 1000}
	if n, err := io.Copy(io.Discard, r); n != 1000 || !errors.Is(err, errUnpacked) {
		t.Errorf("read %d bytes, %v", n, err)
	}
	if _, err := readAtMost(endless{}, 0, 1000); err == nil {
		t.Error("a file without an end was read")
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func FuzzPackage(f *testing.F) {
	f.Add(debOf([2]string{"debian-binary", "2.0\n"}, [2]string{"data.tar", tarOf(f, [2]string{"boot/vmlinuz-1", "x"}, [2]string{"lib/modules/1/x.ko", "ELF"})}))
	f.Add(debOf([2]string{"data.tar.xz", packed(f, ".xz", tarOf(f, [2]string{"lib/modules/1/modules.builtin", "kernel/a.ko\n"}))}))
	f.Add([]byte(arMagic))
	f.Fuzz(func(t *testing.T, deb []byte) {
		k, err := parseKernel(bytes.NewReader(deb))
		if err == nil && (k.release == "" || k.image == nil || len(k.modules) == 0) {
			t.Errorf("accepted %+v", k)
		}
		if _, err := openMember(bytes.NewReader(deb), "control.tar"); err == nil && len(deb) < arHeaderBytes {
			t.Error("a member without a header")
		}
	})
}

func TestLeadsTo(t *testing.T) {
	t.Parallel()
	meta := "Package: linux-image-cloud-amd64\nDepends: foo, linux-image-6.1.0-56-cloud-amd64 (= 6.1.192-2)\nDescription: Linux for x86-64 cloud (meta-package)\n more: text\n"
	for text, want := range map[string]string{
		meta: "linux-image-6.1.0-56-cloud-amd64",
		strings.Replace(meta, " (meta-package)", "", 1):                     "",
		strings.Replace(meta, "linux-image-6.1.0-56-cloud-amd64", "--x", 1): "",
		"": "",
	} {
		if got := leadsTo(text); got != want {
			t.Errorf("%q leads to %q, want %q", text, got, want)
		}
	}
	for name, want := range map[string]bool{
		"linux-image-cloud-amd64": true, "linux-image-": false, "-o": false, "linux-image-a b": false, "linux-image-$(x)": false, "bash": false,
		"linux-image-6.12.1+deb12-cloud-amd64": true,
	} {
		if validPackage(name) != want {
			t.Errorf("%q is valid: %v", name, !want)
		}
	}
}
