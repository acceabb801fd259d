package registry

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

const (
	// pageSize is what most registries allow. For others smallPage is used.
	pageSize  = 1000
	smallPage = 100
	// fullEvery is how often a list is read from its beginning, although its order would allow
	// starting at a prefix.
	fullEvery = 20
)

// order is the known order of a repository's list of tags.
type order struct {
	// sorted means that the list is sorted by bytes and longer than a page, so starting at a
	// prefix saves requests.
	sorted bool
	// seeks counts the lists since the last full one.
	seeks int
}

// Count is how many tags a list has.
type Count struct {
	Tags int
	// TooLong are tags beyond the specification's limit, which were left out.
	TooLong int
}

// Tags calls each with the tags of a repository, at least with all that have the prefix, maybe more
// than once. It keeps none of them.
func (c *Client) Tags(ctx context.Context, as keychain.Credential, repository tagspec.Repository, prefix string, each func(tag string)) (Count, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	what := "tags of " + repository.String()
	h, err := c.host(repository.Host, what)
	if err != nil {
		return Count{}, err
	}
	l := &list{client: c, host: h, as: as, repository: repository, what: what, each: each}
	l.restart()
	if c.seek(repository, prefix) {
		if err := l.read(ctx, prefix); err == nil && l.sorted {
			return l.count, nil
		} else if kind := KindOf(err); kind == Limited || kind == Unreachable || kind == Denied {
			return Count{}, err
		}
		// The registry doesn't know the tag to start after, or its order has changed.
		l.restart()
	}
	if err := l.read(ctx, ""); err != nil {
		return Count{}, err
	}
	c.orders.Add(repository.String(), order{sorted: l.sorted && l.pages > 1})
	return l.count, nil
}

// MaySeek reports whether the next list of a repository may start at a prefix, and so contain
// only the tags from there on.
func (c *Client) MaySeek(repository tagspec.Repository, prefix string) bool {
	known, _ := c.orders.Get(repository.String())
	o, _ := known.(order)
	return prefix != "" && o.sorted && o.seeks < fullEvery
}

// seek is MaySeek, and counts the seek.
func (c *Client) seek(repository tagspec.Repository, prefix string) bool {
	if !c.MaySeek(repository, prefix) {
		return false
	}
	known, _ := c.orders.Get(repository.String())
	o, _ := known.(order)
	o.seeks++
	c.orders.Add(repository.String(), o)
	return true
}

// list is a list of tags while it is being read.
type list struct {
	client     *Client
	host       *host
	as         keychain.Credential
	repository tagspec.Repository
	what       string

	each func(tag string)

	count  Count
	pages  int
	left   int64  // bytes until the limit
	last   string // tag
	sorted bool
}

func (l *list) restart() {
	l.count, l.pages, l.left, l.last, l.sorted = Count{}, 0, maxListBytes, "", true
}

// read follows the pages, from the beginning or from a prefix to its end.
func (l *list) read(ctx context.Context, prefix string) error {
	query := l.first(prefix)
	for {
		next, err := l.page(ctx, query)
		if l.smaller(err, query) {
			query.Set("n", strconv.Itoa(smallPage))
			continue
		}
		if err != nil {
			return err
		}
		l.pages++
		l.client.options.Listed(l.repository.String(), l.count.Tags)
		switch {
		case l.count.Tags > maxTags:
			return l.client.exceeded(ListTags, l.what, "the list exceeds the limit of %d tags", maxTags)
		case next == nil || prefix != "" && past(l.last, prefix):
			return nil
		case l.pages >= maxPages:
			return l.client.exceeded(ListPages, l.what, "the list exceeds the limit of %d pages; %d tags so far", maxPages, l.count.Tags)
		case next.Encode() == query.Encode():
			return untrue(l.what, "page %d of the list names itself as the next one", l.pages)
		}
		query = next
	}
}

func (l *list) first(prefix string) url.Values {
	l.host.mu.Lock()
	defer l.host.mu.Unlock()
	query := url.Values{"n": {strconv.Itoa(l.host.pageSize)}}
	if len(prefix) > 1 {
		// The list starts after "last", and the tag that equals the prefix may be wanted.
		query.Set("last", prefix[:len(prefix)-1])
	}
	return query
}

// smaller reports whether a registry refused the page size, and remembers it.
func (l *list) smaller(err error, query url.Values) bool {
	if !wasRefused(err, http.StatusBadRequest) || query.Get("n") != strconv.Itoa(pageSize) {
		return false
	}
	l.host.mu.Lock()
	defer l.host.mu.Unlock()
	l.host.pageSize = smallPage
	return true
}

func past(tag, prefix string) bool { return tag > prefix && !strings.HasPrefix(tag, prefix) }

// add hands a tag on, and forgets it.
func (l *list) add(tag string) {
	if len(tag) > maxTag {
		l.client.options.Exceeded(TagLength)
		l.count.TooLong++
		return
	}
	if l.count.Tags++; l.count.Tags > maxTags {
		return // The page is read to its end, and refused.
	}
	l.sorted = l.sorted && l.last <= tag
	l.last = tag
	l.each(tag)
}

// page reads one page and the query of the next one.
func (l *list) page(ctx context.Context, query url.Values) (url.Values, error) {
	reply, err := l.client.do(ctx, l.as, call{
		what: l.what, kind: TagsRequest, method: http.MethodGet, repository: l.repository, path: "tags/list", query: query, accept: []string{"application/json"},
		most: l.left,
	})
	if err != nil {
		return nil, err
	}
	defer reply.Close()
	counted := &counter{from: reply.body}
	err = readTags(counted, l.add)
	l.left -= counted.read
	switch {
	case errors.Is(err, errNotAList):
		return nil, untrue(l.what, "%s sent a list that cannot be read", l.host.name)
	case err != nil && l.left <= 0:
		return nil, l.client.exceeded(ListBytes, l.what, "the list exceeds the limit of %d bytes; %d tags on %d pages so far", maxListBytes, l.count.Tags, l.pages+1)
	case err != nil:
		return nil, reply.unread(err, ListBytes)
	}
	return nextPage(reply.header), nil
}

// counter counts the bytes that are read.
type counter struct {
	from io.Reader
	read int64
}

// Read implements [io.Reader].
func (c *counter) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.read += int64(n)
	return n, err
}

// nextPage is the query of the link to the next page. It ignores the link's host and path: some
// registries write them wrongly, and others could redirect credentials elsewhere. Headers are
// limited by the transport, and the link is kept only until the next page is read.
func nextPage(header http.Header) url.Values {
	for _, text := range header.Values("Link") {
		target, parameters, found := strings.Cut(strings.TrimPrefix(strings.TrimSpace(text), "<"), ">")
		if !found || !strings.Contains(strings.ReplaceAll(parameters, `"`, ""), "rel=next") {
			continue
		}
		if u, err := url.Parse(target); err == nil && u.RawQuery != "" {
			return u.Query()
		}
	}
	return nil
}
