// Package crowd bounds a set that several groups share, such as the namespaces of a cluster or the
// addresses of callers. A group that adds too many members pushes out its own.
package crowd

import "slices"

// Crowd holds a limited number of members in the order of their arrival. It isn't safe for
// concurrent use.
type Crowd[T comparable] struct {
	most int
	here []member[T]
}

type member[T comparable] struct {
	group string
	who   T
}

// New makes a crowd of at most that many members.
func New[T comparable](most int) *Crowd[T] { return &Crowd[T]{most: most} }

// Add adds a member. If the crowd was full, it removes and returns the oldest member of the largest
// group, counting the new member.
func (c *Crowd[T]) Add(group string, who T) (left T, full bool) {
	c.here = append(c.here, member[T]{group, who})
	if len(c.here) <= c.most {
		return left, false
	}
	i := c.oldestOfLargest()
	left = c.here[i].who
	c.here = slices.Delete(c.here, i, i+1)
	return left, true
}

// oldestOfLargest is the index of the oldest member of the largest group. Of several largest groups
// it is the one with the oldest member.
func (c *Crowd[T]) oldestOfLargest() int {
	sizes := map[string]int{}
	for _, m := range c.here {
		sizes[m.group]++
	}
	oldest := 0
	for i, m := range c.here {
		if sizes[m.group] > sizes[c.here[oldest].group] {
			oldest = i
		}
	}
	return oldest
}

// Next removes and returns the oldest member.
func (c *Crowd[T]) Next() (who T, ok bool) {
	if len(c.here) == 0 {
		return who, false
	}
	who = c.here[0].who
	c.here = slices.Delete(c.here, 0, 1)
	return who, true
}

// Remove removes a member, if it is there.
func (c *Crowd[T]) Remove(who T) {
	c.here = slices.DeleteFunc(c.here, func(m member[T]) bool { return m.who == who })
}

// Len is the number of members.
func (c *Crowd[T]) Len() int { return len(c.here) }
