'use strict';

// Results of the JavaScript client in the canonical form of ../python/canonical.py. JavaScript has one type of number,
// so 1 and 1.0 are equal here; the expected answers are parsed JSON, in which they are equal, too.

const byText = (a, b) => {
  const [x, y] = [JSON.stringify(a), JSON.stringify(b)];
  return x < y ? -1 : x > y ? 1 : 0;
};

const mapOf = (entries) => ({ map: entries.sort((a, b) => byText(a[0], b[0])) });

/** The properties of an element: a list, or lists by key. */
function properties(element) {
  const found = element.properties ?? [];
  const all = Array.isArray(found) ? found : Object.entries(found).flatMap(([key, values]) =>
    [values].flat().map((value) => (value?.constructor?.name.endsWith('Property') ? value : { key, value })));
  const byKey = new Map();
  for (const property of all) {
    byKey.set(property.key, [...(byKey.get(property.key) ?? []), canonical(property.value)]);
  }
  return mapOf([...byKey].map(([key, values]) => [key, values.sort(byText)]));
}

/** The canonical form of one result. */
function canonical(result) {
  if (result === null || result === undefined) return null;
  if (typeof result === 'bigint') return Number(result);
  if (typeof result === 'number') return Number.isInteger(result) ? result : Number(result.toPrecision(12));
  if (typeof result !== 'object') return result;
  switch (result.constructor.name) {
    case 'Vertex':
      return { vertex: canonical(result.id), label: result.label, properties: properties(result) };
    case 'Edge':
      return { edge: canonical(result.id), label: result.label, out: canonical(result.outV.id),
        in: canonical(result.inV.id), properties: properties(result) };
    case 'VertexProperty':
      return { vertexProperty: result.key, value: canonical(result.value), properties: properties(result) };
    case 'Property':
      return { property: result.key, value: canonical(result.value) };
    case 'Path':
      return { path: result.objects.map(canonical), labels: result.labels.map((labels) => [...labels].sort()) };
    case 'EnumValue':
      return { [result.typeName]: result.elementName };
    case 'Map':
      return mapOf([...result].map(([key, value]) => [canonical(key), canonical(value)]));
    case 'Set':
      return { set: [...result].map(canonical).sort(byText) };
    case 'Array':
      return result.map(canonical);
    case 'Object':
      return mapOf(Object.entries(result).map(([key, value]) => [key, canonical(value)]));
    default:
      throw new TypeError(`no canonical form for ${result.constructor.name}`);
  }
}

/** A form with its sets, maps and properties sorted. `loose`: without what GraphSON 2 cannot express. */
function normal(form, loose) {
  if (Array.isArray(form)) return form.map((item) => normal(item, loose));
  if (form === null || typeof form !== 'object') return form;
  if (form.set) {
    const items = form.set.map((item) => normal(item, loose)).sort(byText);
    return loose ? items : { set: items };
  }
  if (form.map) {
    const key = (of) => (loose && of?.T) || (loose && of?.Direction) || normal(of, loose);
    return mapOf(form.map.map(([name, value]) => [loose ? text(key(name)) : key(name), normal(value, loose)]));
  }
  return Object.fromEntries(Object.entries(form).sort(byText).map(([name, part]) => [name, normal(part, loose)]));
}

const text = (key) => (typeof key === 'string' ? key : JSON.stringify(key));

/** The canonical text of all results of a traversal, for comparison. */
function answer(forms, ordered, loose) {
  const all = forms.map((form) => normal(form, loose));
  return JSON.stringify(ordered ? all : all.sort(byText));
}

module.exports = { answer, canonical };
