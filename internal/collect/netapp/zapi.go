package netapp

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/collect"
)

const (
	zapiPath = "/servlets/netapp.servlets.admin.XMLrequest_filer"
	// zapiVersion is the oldest that has all requests made here: Data ONTAP 7.3.
	zapiVersion = "1.7"
	// elementsMax bounds the elements of one answer, each of which takes 150 bytes: 500 instances have some 15,000.
	elementsMax = 250_000
)

// element is an XML element of a request or an answer.
type element struct {
	XMLName  xml.Name
	Attr     []xml.Attr `xml:",any,attr"`
	Text     string     `xml:",chardata"`
	Children []element  `xml:",any"`
}

// el makes an element of a request.
func el(name string, children ...element) element {
	return element{XMLName: xml.Name{Local: name}, Children: children}
}

func text(name, value string) element {
	return element{XMLName: xml.Name{Local: name}, Text: value}
}

// child returns a descendant by its path; an empty element if there is none.
func (e element) child(path ...string) element {
	for _, name := range path {
		i := slices.IndexFunc(e.Children, func(c element) bool { return c.XMLName.Local == name })
		if i < 0 {
			return element{}
		}
		e = e.Children[i]
	}
	return e
}

func (e element) value(path ...string) string { return strings.TrimSpace(e.child(path...).Text) }

func (e element) attribute(name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// any returns the text of the first descendant with one of these names, at any depth.
func (e element) any(names ...string) (value string, ok bool) {
	for _, c := range e.Children {
		if slices.Contains(names, c.XMLName.Local) {
			return strings.TrimSpace(c.Text), true
		}
		if value, ok := c.any(names...); ok {
			return value, true
		}
	}
	return "", false
}

// zapiError is a request that the system refused.
type zapiError struct{ source, api, errno, reason string }

func (e *zapiError) Error() string {
	return fmt.Sprintf("source %q: %s: %s (errno %s)", e.source, e.api, e.reason, e.errno)
}

// zapi sends requests to one system.
type zapi struct {
	client *collect.Client
	name   string // of the source
}

// call sends one request and returns its results.
func (z *zapi) call(ctx context.Context, api element) (element, error) {
	body, err := xml.Marshal(api)
	if err != nil {
		return element{}, fmt.Errorf("source %q: %w", z.name, err)
	}
	request := fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?><netapp xmlns="http://www.netapp.com/filer/admin" version="%s" nmsdk_language="Go">%s</netapp>`,
		zapiVersion, body)
	answer, err := z.client.Do(ctx, collect.Call{Method: http.MethodPost, Path: zapiPath, Body: []byte(request), Header: map[string]string{"Content-Type": "text/xml"}})
	if err != nil {
		return element{}, err
	}
	reply, ok := parse(answer.Body)
	if !ok {
		return element{}, fmt.Errorf("source %q: %s: the answer is not that of a NetApp system", z.name, api.XMLName.Local)
	}
	results := reply.child("results")
	if results.attribute("status") != "passed" {
		return element{}, &zapiError{z.name, api.XMLName.Local, results.attribute("errno"), z.client.Mask(results.attribute("reason"))}
	}
	return results, nil
}

// parse reads an answer; ok is false if it is not one of a NetApp system.
func parse(text []byte) (reply element, ok bool) {
	if bytes.Count(text, []byte("<")) > 2*elementsMax {
		return reply, false
	}
	d := xml.NewDecoder(bytes.NewReader(text))
	d.Strict = false
	err := d.Decode(&reply)
	return reply, err == nil && reply.XMLName.Local == "netapp"
}

// pages sends a request of cluster mode until it has no more records. Some versions answer the last page with the tag of the request, which
// would go on forever.
func (z *zapi) pages(ctx context.Context, api string, each func(element) error, arguments ...element) error {
	tag := ""
	for range pagesMax {
		request := el(api, append(slices.Clone(arguments), text("max-records", strconv.Itoa(recordsMax)))...)
		if tag != "" {
			request.Children = append(request.Children, text("tag", tag))
		}
		results, err := z.call(ctx, request)
		if err != nil {
			return err
		}
		for _, record := range results.child("attributes-list").Children {
			if err := each(record); err != nil {
				return err
			}
		}
		next := results.value("next-tag")
		if next == "" || next == tag {
			return nil
		}
		tag = next
	}
	return fmt.Errorf("source %q: %s: more than %d pages", z.name, api, pagesMax)
}

// version reports whether the system is clustered.
func (z *zapi) version(ctx context.Context) (clustered bool, err error) {
	results, err := z.call(ctx, el("system-get-version"))
	if err != nil {
		return false, err
	}
	release := results.value("version")
	switch results.value("is-clustered") {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	// Before 8.0 there is no is-clustered and no cluster mode of today.
	if release == "" {
		return false, fmt.Errorf("source %q: system-get-version has no version", z.name)
	}
	return false, nil
}

// schema reads which counters an object has, their units and base counters.
func (z *zapi) schema(ctx context.Context, objectName string) (schema, error) {
	results, err := z.call(ctx, el("perf-object-counter-list-info", text("objectname", objectName)))
	if err != nil {
		return nil, err
	}
	s := schema{}
	for _, c := range results.child("counters").Children {
		s[c.value("name")] = counterInfo{base: c.value("base-counter"), factor: factorOf(c.value("unit"))}
	}
	return s, nil
}

// instance reads the counters of one instance; texts are those that are not numbers.
func instance(e element) (values map[string]uint64, texts map[string]string) {
	values, texts = map[string]uint64{}, map[string]string{}
	for _, c := range e.child("counters").Children {
		name, value := c.value("name"), c.value("value")
		if n, err := strconv.ParseUint(value, 10, 64); err == nil {
			values[name] = n
			continue
		}
		texts[name] = value
	}
	return values, texts
}

// timed sends one request and returns when the system answered it, half way between request and answer. The timestamp of ONTAP has whole
// seconds: rates over ten seconds would be off by up to a tenth.
func (z *zapi) timed(ctx context.Context, api element) (element, time.Time, error) {
	began := time.Now()
	results, err := z.call(ctx, api)
	return results, began.Add(time.Since(began) / 2), err
}

// zeroing is the progress of a disk, from its element; ok is false if it is not being zeroed and was not.
func zeroing(e element) (share float64, ok bool) {
	if percent, has := e.any("zeroing-percent", "zeroing-percent-complete"); has {
		if n, err := strconv.ParseFloat(percent, 64); err == nil && n >= 0 && n <= 100 {
			return n / 100, true
		}
	}
	zeroed, has := e.any("is-zeroed")
	return 1, has && zeroed == "true"
}

// number reads a size.
func number(s string) float64 {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0
	}
	return n
}
