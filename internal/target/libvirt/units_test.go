package libvirt

import (
	"encoding/base64"
	"encoding/xml"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
)

func testTag() target.Tag {
	return target.Tag{Controller: "c", Run: "r", Nonce: strings.Repeat("ab", 16)}
}

func recorded(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestURIs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"qemu:///system":  "qemu:///system",
		"qemu:///session": "qemu:///session",
		"qemu+unix:///system?socket=/run/x/libvirt-sock":    "qemu+unix:///system?socket=/run/x/libvirt-sock",
		"qemu+ssh://root@host-1.example.org:2222/system":    "qemu+ssh://root@host-1.example.org:2222/system?no_tty=1",
		"qemu+ssh://10.0.0.1/system?keyfile=/root/.ssh/k":   "qemu+ssh://10.0.0.1/system?keyfile=%2Froot%2F.ssh%2Fk&no_tty=1",
		"qemu+ssh://[fd00::1]/system":                       "qemu+ssh://[fd00::1]/system?no_tty=1",
		"qemu+tls://host/system?pkipath=/etc/pki/elsewhere": "qemu+tls://host/system?pkipath=/etc/pki/elsewhere",
	} {
		if got, err := checkURI(text); err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "qemu", "/system", "xen:///system", "test:///default", "qemu+ssh:///system", "qemu://host/system",
		"qemu+ssh://-oProxyCommand=reboot/system", "qemu+ssh://-l@host/system", "qemu+ssh://root:hunter2@host/system",
		"qemu+ssh://host/system?command=/tmp/x", "qemu+ssh://host/system?netcat=/tmp/x", "qemu+ssh://host/system?proxy=native",
		"qemu+ssh://host/system?known_hosts_verify=ignore", "qemu+tls://host/system?no_verify=1", "qemu:///system?socket=-x",
		"qemu:///system;reboot", "qemu:///system ", "qemu:///system\n", "qemu:///elsewhere", "qemu:///system#x",
		"qemu+ssh://host/system?keyfile=/a&keyfile=/b", "--help", "qemu+ext:///system?command=x",
	} {
		got, err := checkURI(text)
		if diag.ExitCode(err) != diag.ExitData {
			t.Errorf("%q was accepted as %q: %v", text, got, err)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error shows a password: %v", err)
		}
	}
}

func TestDiskNames(t *testing.T) {
	t.Parallel()
	for i, want := range map[int]string{0: "sda", 1: "sdb", 25: "sdz", 26: "sdaa", 27: "sdab", 51: "sdaz", 52: "sdba"} {
		if got := diskName(i); got != want || diskIndex(got) != i {
			t.Errorf("%d: got %q and back %d, want %q", i, got, diskIndex(got), want)
		}
	}
}

// Whatever a VM is called, its domain can be defined, and says the same of it afterwards.
func TestRecordSurvivesXML(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "a", "a\x00b", "]]>", "</bragg:vm>", "é\n👩‍👩‍👧", strings.Repeat("x", 3000), "'\"&<>"} {
		id := vmID(testTag().Mark(), name)
		want := record{VM: target.VM{ID: id, Name: name, Group: name, Disks: []target.Disk{{Device: "/dev/sdb", SizeBytes: 5}}}}
		m, err := newMetadata(testTag(), want)
		if err != nil {
			t.Fatal(err)
		}
		d := machine(accelTCG, "host-model")
		d.Name, d.UUID, d.Metadata = domainName(id, name), id, &notes{m}
		text, err := d.text()
		if err != nil {
			t.Fatal(err)
		}
		seen, err := parseSights(append(text, text...))
		if err != nil || len(seen) != 2 {
			t.Fatalf("%q: got %d domains, %v", name, len(seen), err)
		}
		if got := seen[1]; got.mark() != testTag().Mark() || got.active() || !reflect.DeepEqual(got.record(), want) {
			t.Errorf("%q: got %+v, want %+v", name, got.record(), want)
		}
		if len(d.Name) > 80 || strings.ContainsAny(d.Name, "/ \n\x00<") {
			t.Errorf("%q: the domain is called %q", name, d.Name)
		}
	}
}

// A record that somebody tampered with does not hide whose the domain is.
func TestBadRecords(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "%%%", base64.StdEncoding.EncodeToString([]byte(`{"vm":{"id":"another"}}`)), "bnVsbA=="} {
		s := sight{UUID: "u", Name: "n", Owners: []owner{
			{XMLName: xml.Name{Space: "https://other.example", Local: "vm"}, Mark: "theirs"},
			{XMLName: xml.Name{Space: namespace, Local: "vm"}, Mark: "ours", Record: text},
		}}
		if s.mark() != "ours" || s.record().VM.ID != "u" || s.record().VM.Name != "n" {
			t.Errorf("%q: got %q, %+v", text, s.mark(), s.record())
		}
	}
}

func TestVolumeNames(t *testing.T) {
	t.Parallel()
	mark, id := testTag().Mark(), vmID(testTag().Mark(), "a")
	for _, role := range []string{"sda", "sdb", "sdaa", "sdb.1", "sdb.149", "seed", "kernel", "initrd"} {
		o, ok := parseVolumeName(volumeName(mark, id, role))
		if want := (volumeOwner{mark, id, role}); !ok || o != want {
			t.Errorf("got %+v, want %+v", o, want)
		}
	}
	good := volumeName(mark, id, "sdb")
	for _, name := range []string{
		"", good + ".bak", good + "~", "x" + good, strings.ToUpper(good), strings.Replace(good, mark, mark[1:], 1),
		strings.Replace(good, "sdb", "sd", 1), good + "\n", "../" + good, good + ".1.2",
	} {
		if o, ok := parseVolumeName(name); ok {
			t.Errorf("%q counts as %+v", name, o)
		}
	}
	list := " " + good + "   /pool/" + good + "\n a b   /pool/a b\n bragg-x   /x\n" + good + "\n"
	if got := volumesOf([]byte(list)); !reflect.DeepEqual(got, []string{good}) {
		t.Errorf("got %q", got)
	}
}

func TestHost(t *testing.T) {
	t.Parallel()
	got, err := parseHost(recorded(t, "nodeinfo.txt"), recorded(t, "nodememstats.txt"), recorded(t, "capabilities.xml"), recorded(t, "version.txt"))
	want := hostFacts{
		uuid: "0b7a3c52-7c41-4a2f-9a37-6d1f0a3f9b11", cpus: 2, megahertz: 2596, ramBytes: 16777216 * 1024,
		software: "QEMU 7.2.22, libvirt 9.0.0",
	}
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if _, err := parseHost(nil, nil, []byte("<capabilities/>"), nil); err == nil {
		t.Error("a host without a UUID is one")
	}
}

func TestStats(t *testing.T) {
	t.Parallel()
	list, err := parseStats(recorded(t, "domstats.txt"))
	if err != nil || len(list) != 2 {
		t.Fatalf("got %d domains, %v", len(list), err)
	}
	one := list[0]
	if one.domain != "bragg-OLTP-0001-1b49c3f2a6b0c2d4e6f8" || one.number("cpu.time") != 3921874000 || one.sum("block", "wr.bytes") != 4096+512 ||
		one.sum("net", "rx.bytes") != 4242 || one.number("no.such.thing") != 0 {
		t.Errorf("got %+v", one)
	}
	if list[1].domain != "it's = strange" {
		t.Errorf("got %q", list[1].domain)
	}
	for _, text := range []string{"cpu.time=1\n", "Domain: 'a'\n  nonsense\n", "error: no\n"} {
		if _, err := parseStats([]byte(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

func TestReadings(t *testing.T) {
	t.Parallel()
	before, err := parseHostReading(recorded(t, "nodecpustats.txt"), recorded(t, "nodememstats.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if before.busy != 4e9+1e9 || before.all != 10e9 || before.memory < 24.9 || before.memory > 25.1 {
		t.Errorf("got %+v", before)
	}
	now := before
	now.at = before.at.Add(2e9)
	now.busy, now.all = before.busy+1e9, before.all+4e9
	now.received = map[string]float64{"new": 2048, "it's = strange": 0}
	for _, s := range between("n", hostFacts{cpus: 2, megahertz: 1000}, before, now) {
		want := map[string]float64{
			"CpuUsage.Avg.Percent": 25, "CpuUsage.Avg.Megahertz": 500, "MemUsage.Avg.Percent": before.memory,
			"NetReceived.Avg.KilobytesPerSecond": 1, "NetTransmitted.Avg.KilobytesPerSecond": 0,
		}
		if s.Value != want[s.Metric] || s.Simulated || s.NodeID != "n" {
			t.Errorf("got %+v, want %v", s, want[s.Metric])
		}
	}
	for _, text := range []string{"", "user: x\n"} {
		if _, err := parseHostReading([]byte(text), recorded(t, "nodememstats.txt")); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

func TestAddressOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", " vnet0      52:54:00:12:34:56    ipv4         10.0.2.17/24\n": "10.0.2.17",
		" vnet0 52:54:00:12:34:56 ipv6 fe80::1/64\n -          -                    ipv4         10.0.2.18/24\n": "10.0.2.18",
		" vnet0 52:54:00:12:34:56 ipv4 N/A\n": "", " vnet0 x ipv4 0.0.0.0/0\n": "",
	} {
		if got := addressOf([]byte(text)); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	s, err := readSettings(target.Config{})
	if err != nil || s.pool != "default" || s.network != "default" || s.cache != "none" || s.diskFormat != formatRaw {
		t.Errorf("got %+v, %v", s, err)
	}
	_, err = readSettings(target.Config{Options: map[string]string{"cahce": "none", "storage": "everywhere"}})
	if diag.ExitCode(err) != diag.ExitData || !strings.Contains(err.Error(), "and 1 more") {
		t.Errorf("got %v", err)
	}
}

func FuzzParseStats(f *testing.F) {
	f.Add(recorded(f, "domstats.txt"))
	f.Add([]byte("Domain: ''\n  net.count=99999999999999999999\n  net.0.rx.bytes=-1\n"))
	f.Add([]byte("Domain: 'a'\n  net.count=1024\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := parseStats(text)
		if err != nil {
			return
		}
		for _, s := range list {
			if s.number("cpu.time") < 0 || s.sum("net", "rx.bytes") < 0 {
				t.Errorf("%+v is negative", s)
			}
		}
	})
}

func FuzzParseSights(f *testing.F) {
	f.Add(recorded(f, "domain.xml"))
	f.Add([]byte("<domain id='1'><uuid>x</uuid><metadata><vm xmlns='" + namespace + "' mark='m'>e30=</vm></metadata></domain>"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := parseSights(text)
		if err != nil {
			return
		}
		for _, s := range list {
			if s.record().VM.ID != s.UUID {
				t.Errorf("the record of %q is of %q", s.UUID, s.record().VM.ID)
			}
			for _, l := range (presence{nil, s}).layers() {
				if o, ok := parseVolumeName(l.volume); !ok || o.id != s.UUID {
					t.Errorf("layer %+v is none of its own", l)
				}
			}
		}
	})
}

func FuzzCheckURI(f *testing.F) {
	f.Add("qemu+ssh://root@host/system?keyfile=/k")
	f.Add("qemu+unix:///system?socket=/s")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := checkURI(text)
		if err != nil {
			return
		}
		again, err := checkURI(got)
		if err != nil || again != got {
			t.Errorf("%q became %q, and that %q, %v", text, got, again, err)
		}
	})
}
