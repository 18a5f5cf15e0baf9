package report_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/braggdev/bragg/internal/testreq"
)

// browser starts one headless Chromium, with a profile of its own, for all tests; TestMain ends it.
var browser = sync.OnceValues(func() (context.Context, error) {
	profile, err := os.MkdirTemp("", "report-browser-")
	if err != nil {
		return nil, err
	}
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath("chromium"), chromedp.UserDataDir(profile), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.Flag("disable-quic", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("hide-scrollbars", true),
	}
	hang, cancelHang := context.WithTimeout(context.Background(), 3*time.Minute)
	allocator, cancelAllocator := chromedp.NewExecAllocator(hang, options...)
	ctx, cancel := chromedp.NewContext(allocator)
	endBrowser = func() {
		cancel()
		cancelAllocator()
		cancelHang()
		os.RemoveAll(profile)
	}
	return ctx, chromedp.Do(ctx)
})

var endBrowser = func() {}

func TestMain(m *testing.M) {
	code := m.Run()
	endBrowser()
	os.Exit(code)
}

// tab is one page of a browser with everything that it complained about.
type tab struct {
	context.Context
	mu     sync.Mutex
	faults []string
}

// open starts a tab that notes exceptions, console messages and refused content.
func open(t testing.TB) *tab {
	t.Helper()
	if testing.Short() {
		t.Skip("long")
	}
	testreq.Program(t, "chromium")
	all, err := browser()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := chromedp.NewContext(all)
	t.Cleanup(cancel)
	b := &tab{Context: ctx}
	note := func(text string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.faults = append(b.faults, text)
	}
	err = chromedp.Listen(b, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			note(fmt.Sprintf("exception: %s %v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
		case *runtime.EventConsoleAPICalled:
			note(fmt.Sprintf("console: %v", e.Args))
		case *log.EventEntryAdded:
			note("log: " + e.Entry.Text)
		case *network.EventRequestWillBeSent:
			if e.Request.URL != "" && !strings.HasPrefix(e.Request.URL, "file://") {
				note("request: " + e.Request.URL)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, enable := range []error{call(b, log.Enable, cdp.Empty{}), call(b, runtime.Enable, cdp.Empty{}),
		call(b, network.Enable, network.EnableParams{})} {
		if enable != nil {
			t.Fatal(enable)
		}
	}
	return b
}

func call[P, R any](ctx context.Context, command cdp.Command[P, R], params P) error {
	_, err := chromedp.Call(ctx, command, params)
	return err
}

// load shows html in a window of width by height pixels and waits until its charts are drawn.
func (b *tab) load(t testing.TB, html []byte, width, height int64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, html, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(b, chromedp.EmulateViewport(width, height), chromedp.Navigate("file://"+path)); err != nil {
		t.Fatal(err)
	}
}

// scheme sets the colours that the reader prefers: "light" or "dark".
func (b *tab) scheme(t *testing.T, scheme string) {
	t.Helper()
	err := call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	if err != nil {
		t.Fatal(err)
	}
}

// eval returns the value of an expression.
func eval[T any](t testing.TB, b *tab, expression string) T {
	t.Helper()
	v, err := chromedp.Run(b, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// check fails the test for everything that the page complained about.
func (b *tab) check(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.faults {
		t.Error(f)
	}
}

func (b *tab) pdf(t *testing.T) []byte {
	t.Helper()
	r, err := chromedp.Call(b, page.PrintToPDF, page.PrintToPDFParams{PaperWidth: 8.27,
		PaperHeight: 11.69})
	if err != nil {
		t.Fatal(err)
	}
	return r.Data
}
