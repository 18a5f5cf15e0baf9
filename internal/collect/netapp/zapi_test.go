package netapp

import (
	"strings"
	"testing"
)

// FuzzAnswer: whatever a system answers, reading it ends, and shares are shares.
func FuzzAnswer(f *testing.F) {
	for _, text := range []string{
		"<?xml version='1.0' encoding='UTF-8' ?><!DOCTYPE netapp SYSTEM 'file:/etc/netapp_gx.dtd'><netapp version='1.17'><results status=\"passed\"><tag>1</tag></results></netapp>",
		"<netapp><results status=\"failed\" reason=\"no &amp; no\" errno=\"13005\"></results></netapp>",
		"<netapp><results><instances><instance-data><counters><counter-data><name>read_ops</name><value>18446744073709551615</value></counter-data></counters></instance-data></instances></results></netapp>",
		"<netapp><results><zeroing-percent>41</zeroing-percent><is-zeroed>false</is-zeroed></results></netapp>", "<html>", "", "<netapp><netapp>",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		reply, ok := parse(text)
		if !ok {
			return
		}
		results := reply.child("results")
		for _, e := range results.child("instances").Children {
			instance(e)
		}
		if share, has := zeroing(results); has && !(share >= 0 && share <= 1) {
			t.Errorf("share %v", share)
		}
	})
}

// TestManySmallElements: a text of small elements would take a hundred times its size in memory.
func TestManySmallElements(t *testing.T) {
	if _, ok := parse([]byte("<netapp>" + strings.Repeat("<a/>", 600_000) + "</netapp>")); ok {
		t.Error("an answer with 600,000 elements was read")
	}
	if _, ok := parse([]byte(strings.Repeat("<a>", 20_000))); ok {
		t.Error("an answer with 20,000 levels was read")
	}
}
