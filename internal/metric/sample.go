package metric

import (
	"maps"
	"slices"
	"strconv"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/braggdev/bragg/internal/result"
)

type scrapedSeries struct {
	labels labels.Labels
	ref    storage.SeriesRef
}

// AppendSamples adds scraped samples. The labels run and scenario are added to all.
func (s *Store) AppendSamples(samples []result.Sample) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range samples {
		sample := &samples[i]
		series := s.scrapedSeries(sample)
		s.put(value{ref: &series.ref, labels: series.labels, millis: s.millis(sample.AtNanos), number: sample.Value})
	}
	return s.hand()
}

func (s *Store) scrapedSeries(sample *result.Sample) *scrapedSeries {
	s.names = append(s.names[:0], sample.Name...)
	for _, name := range slices.Sorted(maps.Keys(sample.Labels)) {
		s.names = strconv.AppendQuote(s.names, name)
		s.names = strconv.AppendQuote(s.names, sample.Labels[name])
	}
	series := s.scraped[string(s.names)]
	if series == nil {
		b := labels.NewBuilder(labels.EmptyLabels())
		for name, value := range sample.Labels {
			b.Set(name, value)
		}
		b.Set(model.MetricNameLabel, sample.Name)
		for name, value := range s.own {
			b.Set(name, value)
		}
		series = &scrapedSeries{labels: b.Labels()}
		s.scraped[string(s.names)] = series
	}
	return series
}
