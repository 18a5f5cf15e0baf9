package domain

import (
	"encoding/base64"
	"encoding/xml"
	"reflect"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/target"
)

func TestDiskNames(t *testing.T) {
	t.Parallel()
	for i, want := range map[int]string{0: "sda", 1: "sdb", 25: "sdz", 26: "sdaa", 27: "sdab", 51: "sdaz", 52: "sdba"} {
		if got := target.DiskName(i); got != want || DiskIndex(got) != i {
			t.Errorf("%d: got %q and back %d, want %q", i, got, DiskIndex(got), want)
		}
	}
}

// Whatever a VM is called, its domain can be defined, and says the same of it afterwards.
func TestRecordSurvivesXML(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "a", "a\x00b", "]]>", "</bragg:vm>", "é\n👩‍👩‍👧", strings.Repeat("x", 3000), "'\"&<>"} {
		id := target.VMID(testTag().Mark(), name)
		want := Record{VM: target.VM{ID: id, Name: name, Group: name, Disks: []target.Disk{{Device: "/dev/sdb", SizeBytes: 5}}}}
		m, err := NewMetadata(testTag(), want)
		if err != nil {
			t.Fatal(err)
		}
		d := Domain{Type: TCG, Name: Name(id, name), UUID: id, Metadata: m}
		text := d.Text()
		seen, err := Parse(append(text, text...))
		if err != nil || len(seen) != 2 {
			t.Fatalf("%q: got %d domains, %v", name, len(seen), err)
		}
		if got := seen[1]; got.Mark() != testTag().Mark() || got.Active() || !reflect.DeepEqual(got.Record(), want) {
			t.Errorf("%q: got %+v, want %+v", name, got.Record(), want)
		}
		if len(d.Name) > 80 || strings.ContainsAny(d.Name, "/ \n\x00<") {
			t.Errorf("%q: the domain is called %q", name, d.Name)
		}
	}
}

// A record that was tampered with does not hide the owner of the domain.
func TestBadRecords(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "%%%", base64.StdEncoding.EncodeToString([]byte(`{"vm":{"id":"another"}}`)), "bnVsbA=="} {
		s := Info{UUID: "u", Name: "n", Owners: []owner{
			{XMLName: xml.Name{Space: "https://other.example", Local: "vm"}, Mark: "theirs"},
			{XMLName: xml.Name{Space: namespace, Local: "vm"}, Mark: "ours", Record: text},
		}}
		if s.Mark() != "ours" || s.Record().VM.ID != "u" || s.Record().VM.Name != "n" {
			t.Errorf("%q: got %q, %+v", text, s.Mark(), s.Record())
		}
	}
}

func testTag() target.Tag {
	return target.Tag{Controller: "c", Run: "r", Nonce: strings.Repeat("ab", 16)}
}

func TestTopology(t *testing.T) {
	t.Parallel()
	set := target.Topology{Sockets: 2, Cores: 4, Threads: 1}
	const want = `<topology sockets="2" dies="1" cores="4" threads="1"/>`
	for _, kind := range []string{KVM, TCG} {
		text := string(Domain{Type: kind, CPUMode: "host-model", VCPUs: 8, Topology: set}.Text())
		cpu, _, _ := strings.Cut(text[strings.Index(text, "<cpu"):], "</cpu>")
		if !strings.Contains(cpu, want) || strings.Count(text, "<cpu") != 1 {
			t.Errorf("%s: got %s", kind, cpu)
		}
		if text = string(Domain{Type: kind, CPUMode: "host-model", VCPUs: 8}.Text()); strings.Contains(text, "<topology") {
			t.Errorf("%s without a topology: got %s", kind, text)
		}
	}
}
