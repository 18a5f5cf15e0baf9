package parmfile_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load/vdbench/parmfile"
	"github.com/braggdev/bragg/internal/testreq"
)

var corpusVariables = map[string]string{"host1": "a.example", "host2": "b.example", "anchor1": "/mnt/a", "anchor2": "/mnt/b", "vdbench_path": "/opt/vdbench"}

// parse reads a text with those of the variables that it has.
func parse(text string) *parmfile.File {
	used := map[string]string{}
	for name, value := range corpusVariables {
		if strings.Contains(text, "$"+name) {
			used[name] = value
		}
	}
	return parmfile.Parse("test.parm", text, used)
}

func faults(f *parmfile.File) (list []string) {
	for _, d := range f.Issues.Sorted() {
		list = append(list, fmt.Sprintf("%d:%d %s %s", d.Pos.Line, d.Pos.Column, d.Severity, d.Code))
	}
	return list
}

// Every public parameter file is read without an error, and says what a reader sees in it.
func TestCorpus(t *testing.T) {
	read := map[string]*parmfile.File{}
	err := filepath.WalkDir(testreq.Corpus(t, "vdbench"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "SOURCES" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f := parse(string(text))
		if err := f.Issues.Err(); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		read[d.Name()] = f
		return nil
	})
	if err != nil || len(read) != 5 {
		t.Fatalf("%d files, %v", len(read), err)
	}
	curve := read["random_write_curve"].Of(parmfile.Run)[0]
	if curve.Text("iorate", "") != "curve" || curve.Seconds("elapsed", 0).Seconds() != 120 || curve.Text("interval", "") != "10" {
		t.Errorf("curve: %+v", curve)
	}
	reads := read["100-Reads.vdb"]
	fwd := reads.Of(parmfile.FileWork)[1]
	mix, _ := fwd.Get("xfersize")
	if shares := mix.Mix(); len(shares) != 7 || shares[0] != (parmfile.Share{Bytes: 8192, Percent: 67}) || fwd.Text("fsd", "") != "fsd2" || fwd.Text("operation", "") != "read" {
		t.Errorf("fwd2 inherits %+v", fwd)
	}
	if fsd := reads.Of(parmfile.FileSystem)[0]; fsd.Text("anchor", "") != "/mnt/a" || fsd.Number("files", 0) != 6500 {
		t.Errorf("fsd1: %+v", fsd)
	}
	if rd := reads.Of(parmfile.Run)[0]; rd.Seconds("elapsed", 0).Hours() != 1 {
		t.Errorf("rd1: %+v", rd)
	}
	linear := read["run_32K_70R_lin.vdb"]
	if sd := linear.Of(parmfile.Storage); len(sd) != 1 || sd[0].Text("lun", "") != "/dev/sdc1" || sd[0].Text("openflags", "") != "directio" || sd[0].Number("threads", 0) != 32 {
		t.Errorf("sd: %+v", sd)
	}
	if got := faults(linear); !slices.Equal(got, []string{"17:45 warning sequential-mix"}) {
		t.Errorf("issues: %q", got)
	}
	if got := faults(read["multi_host"]); !slices.Equal(got, []string{"39:23 warning same-sequential-region"}) {
		t.Errorf("issues: %q", got)
	}
}

const small = "sd=sd1,lun=/dev/sdb\nwd=wd1,sd=sd1\n"

// Every problem is found at its place.
func TestIssues(t *testing.T) {
	for text, want := range map[string]string{
		small + "rd=rd1,wd=wd1,iorate=max":                                        "",
		small + "rd=rd1,wd=wd1,iorate=max,elapse=60":                              "",
		small + "rd=rd1,wd=wd1,iorate=max,elapesd=60":                             "3:26 error unknown-key",
		small + "rd=rd1,wd=wd1,iorate=max,for=60":                                 "3:26 error unknown-key",
		small + "rd=rd1,wd=wd2,iorate=max":                                        "3:11 error not-defined",
		small + "rd=rd1,wd=wd1,iorate=max,\n  elapsed=60,\n* c\ninterval=5":       "",
		small + "rd=rd1,wd=wd1,iorate=max,":                                       "3:25 warning continued",
		small + "rd=rd1,wd=wd1,iorate=max, elapsed=60":                            "3:25 warning continued|3:27 warning blank-begins-comment",
		small + "rd=rd1,wd=wd1,iorate=max the end":                                "",
		small + "rd=rd1,wd=wd1":                                                   "3:4 error no-rate",
		small + "rd=rd1,wd=wd1,iorate=max\nelapsed=60":                            "",
		small + "rd=rd1,wd=wd1,iorate=max\nelapesd=60":                            "4:1 error order",
		small + "rd=rd1,wd=wd1,iorate=max\nmonitor=x":                             "4:1 error order",
		small + "wd=wd2,sd=wd1-wd2\nrd=rd1,wd=wd1,iorate=max":                     "3:11 error not-defined",
		small + "wd=wd2,sd=(sd1-x)\nrd=rd1,wd=wd1,iorate=max":                     "3:12 error bad-range",
		small + "rd=rd1,wd=w*1,iorate=max":                                        "3:11 error not-defined",
		small + "rd=rd1,wd=wd1,iorate=max,wd=wd1":                                 "3:26 error given-twice",
		small + "rd=rd1,wd=wd1,iorate=5,iorate=9":                                 "3:24 warning given-twice",
		small + "rd=rd1,wd=wd1,iorate=(5,6),iorate=9":                             "3:28 error given-twice",
		small + "rd=rd1,wd=wd1,iorate=0.":                                         "3:22 error bad-value",
		small + "include=x\nrd=rd1,wd=wd1,iorate=9":                               "",
		"sd=sd1,lun=a,size=0,\nwd=wd1,sd=sd1,xfersize=0":                          "2:24 error bad-value",
		"sd=sd1,lun=a,hd=nohost":                                                  "1:17 error not-defined",
		"fsd=f,anchor=/a\nfwd=w,fsd=f,host=local*":                                "2:18 error not-defined",
		small + "rd=rd1,wd=wd1,iorate=max\nsd=sd2,lun=x":                          "4:1 error order",
		small + "wd=wd1,sd=sd1\nrd=rd1,wd=wd1,iorate=max":                         "3:4 error defined-twice",
		small + "rd=rd1,wd=wd1,iorate=max,elapsed=5,interval=5":                   "3:34 error too-short",
		small + "rd=rd1,wd=wd1,iorate=max,elapsed=0":                              "3:34 error too-short",
		small + "rd=rd1,wd=wd1,iorate=curve,elapsed=30":                           "3:36 warning short-curve",
		small + "rd=rd1,wd=wd1,iorate=max,curve=(10-100,10)":                      "3:4 warning curve-without-effect",
		small + "rd=rd1,wd=wd1,iorate=(10-100)":                                   "3:23 error bad-value",
		small + "rd=rd1,wd=wd1,iorate=max,forxfersize=(8k,40,16k,60)":             "3:26 warning loop-not-mix",
		small + "rd=rd1,wd=wd1,iorate=max,forthreads=(1-64,d)\neof\nnone":         "",
		"sd=sd1,lun=/dev/sdb\nwd=wd1,sd=sd1,xfersize=(8k,40,16k,50)":              "2:25 error bad-value",
		"sd=sd1,lun=/dev/sdb\nwd=wd1,sd=sd1,xfersize=4q":                          "2:24 error bad-value",
		"sd=sd1,lun=$disk":                                                        "1:12 error unset-variable",
		"sd=sd1":                                                                  "1:4 error no-lun",
		"sd=sd1,lun=a,lun=b,size=1g,size=2g":                                      "1:18 error given-twice|1:28 warning given-twice",
		"sd=sd1,lun=a\nwd=wd1,sd=(sd1,rdpct=50":                                   "2:8 error parenthesis|2:11 error not-defined",
		"sd=sd1,lun=a\nwd=wd1,sd=sd1,,rdpct=50":                                   "2:15 error empty",
		"sd=sd1,lun=a\nwd=default,sd=sd1,skew=30\nwd=a\nwd=b\nrd=r,wd=*,iorate=9": "5:4 error skew",
		small + "rd=r,wd=wd1,iorate=max,forthreads=(5-1,2)":                       "3:36 error bad-value",
		small + "rd=r,wd=wd1,iorate=max,elapsed=5,interval=2":                     "3:32 error elapsed-not-multiple",
		small + "rd=r,wd=wd1,iorate=max,elapsed=1,interval=0.1":                   "",
		small + "rd=r,wd=wd1,iorate=max,elapsed=60,warmup=7":                      "",
		small + "rd=r,wd=wd1,iorate=max,elapsed=60,warmup=7,interval=5":           "3:42 error warmup-not-multiple",
		small + "rd=r,wd=wd1,iorate=inf":                                          "3:20 error bad-value",
	} {
		f := parse(text)
		got := strings.Join(faults(f), "|")
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
}

func TestAbbreviations(t *testing.T) {
	f := parse("sd=sd1,lun=a,th=4\nwd=wd1,sd=*,xf=1m,seek=eof\nrd=rd1,wd=*,io=max,el=100h,forx=(4k,8k),dist=d\n")
	if err := f.Issues.Err(); err != nil {
		t.Fatal(err)
	}
	rd := f.Of(parmfile.Run)[0]
	if p, ok := rd.Get("forxfersize"); !ok || len(p.Values) != 2 || rd.Text("distribution", "") != "d" || f.Of(parmfile.Storage)[0].Text("threads", "") != "4" {
		t.Errorf("read %+v", f.Definitions)
	}
}

func TestExpand(t *testing.T) {
	for text, want := range map[string]string{
		"(1-5,2)": "1 3 5", "(1-64,d)": "1 2 4 8 16 32 64", "(64-1,d)": "64 32 16 8 4 2 1", "(8k,1k,d)": "8192 4096 2048 1024",
		"7": "7", "(4k-12k,4k)": "4096 8192 12288", "(3,1,2)": "3 1 2",
	} {
		f := parse(small + "rd=rd1,wd=wd1,iorate=max,forxfersize=" + text)
		p, ok := f.Of(parmfile.Run)[0].Get("forxfersize")
		if got := strings.Join(p.Expand(), " "); !ok || got != want {
			t.Errorf("%s: %s, want %s; %q", text, got, want, faults(f))
		}
	}
}

func TestSelectAndCount(t *testing.T) {
	f := parse("sd=sd,lun=/dev/vol%02d,count=(8,4)\nsd=other,lun=x\nwd=w,sd=(sd8-sd10,o*)\n")
	if err := f.Issues.Err(); err != nil {
		t.Fatal(err)
	}
	p, _ := f.Of(parmfile.Workload)[0].Get("sd")
	var got []string
	for _, d := range f.Select(parmfile.Storage, p) {
		got = append(got, d.Name.Text+"="+d.Text("lun", ""))
	}
	if want := "sd8=/dev/vol08 sd9=/dev/vol09 sd10=/dev/vol10 other=x"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %s", got, want)
	}
}

// A file that is cut anywhere, or hostile, is read without a panic, and its issues lie within it.
func FuzzParse(f *testing.F) {
	f.Add("dedupratio=4\nsd=default,openflags=directio\nsd=sd1,lun=$anchor1,size=1g\nwd=w,sd=sd*,xfersize=(8k,67,16k,33)\nrd=r,wd=w,iorate=(100-1000,100)")
	f.Add("hd=h,mount=\"a b\"\nfsd=f,anchor=/a,sizes=(1k,50,2k,50),count=(1,9)\nfwd=w,fsd=*\nrd=r,fwd=w*,fwdrate=max,format=(restart,only)")
	f.Add("!\n$x,$y\n,,=,a=()\n\"=1")
	f.Add("rd=r,wd=w,forthreads=(1-99999999999t,d),iorate=(9223372036854775807-1,d)\nsd=x,count=(999999999,999999999)")
	f.Add("sd=a-b,lun=((\x00\xff),\"\nsd=[,lun=\\\nwd=w,sd=(a-b,[*,sd1-sd99999999999999999999)\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		file := parse(text)
		lines := strings.Count(text, "\n") + 1
		for _, d := range file.Issues {
			if d.Pos.Line > lines || d.Severity == "" || d.Message == "" {
				t.Errorf("issue %+v in a text of %d lines", d, lines)
			}
		}
		var out strings.Builder
		if err := diag.Render(&out, file.Issues); err != nil {
			t.Error(err)
		}
		for i := range file.Definitions {
			for _, p := range file.Definitions[i].Parameters {
				p.Expand()
				p.Mix()
			}
		}
	})
}

func TestTruncated(t *testing.T) {
	text := "compratio=2\nhd=default,shell=ssh\nsd=default,openflags=(o_direct,fsync)\nsd=sd1,lun=$anchor1,range=(0,50)\nwd=w,sd=sd*,xfersize=(8k,67,16k,33),seekpct=20\nrd=r,wd=w,iorate=(100-1000,100),forthreads=(1,2)\n"
	for i := range text {
		parse(text[:i])
	}
}

// What a hostile file can make of few bytes is bounded.
func TestBounds(t *testing.T) {
	many := strings.Builder{}
	many.WriteString("sd=sd,lun=/f,count=(1,9000)\n")
	for i := range 5000 {
		fmt.Fprintf(&many, "wd=w%d,sd=(sd1-sd9000)\n", i)
	}
	for text, want := range map[string]string{
		small + "rd=r,wd=wd1,iorate=5" + strings.Repeat(",iorate=6", 10_000) + "\n":                            "",
		small + "rd=r,wd=wd1,iorate=5" + strings.Repeat(",iorate=6", 10_000) + "\nrd=r,wd=wd1,iorate=5\n":      "defined-twice",
		many.String() + "rd=r,wd=*,iorate=5\n":                                                                 "too-many",
		"sd=sd1,lun=a\nwd=w,sd=(sd1-sd999999999)\n":                                                            "not-defined",
		"sd=sd1,lun=a,\ninclude=x\nwd=w,sd=sd1,\ninclude=(y,z)\n" + strings.Repeat("include=x\n", 10_000):      "",
		small + "rd=default,iorate=(1-10000,1)\nrd=a,wd=wd1,iorate=5\n" + strings.Repeat("iorate=6\n", 10_000): "given-twice",
	} {
		f := parse(text)
		code := ""
		for _, d := range f.Issues {
			if d.Severity == diag.SeverityError && code == "" {
				code = d.Code
			}
		}
		if code != want || len(f.Issues) > 1001 {
			t.Errorf("%.60s …: %d issues, error %q, want %q", text, len(f.Issues), code, want)
		}
	}
}
