# A batch program that has much to compile: the compiler of Scala 3 at work on a source of some hundred lines. From Maven
# Central into the current directory. To be sourced after fetch.bash; `marusa bench account` has both inside
# (src/act/server/recipe.rs).

scala_version=3.6.4

fetch_compiler() {
    as_package mvn maven
    cat >pom.xml <<END
<project xmlns="http://maven.apache.org/POM/4.0.0">
    <modelVersion>4.0.0</modelVersion>
    <groupId>marusa</groupId><artifactId>compiler</artifactId><version>1</version><packaging>pom</packaging>
    <dependencies>
        <dependency>
            <groupId>org.scala-lang</groupId><artifactId>scala3-compiler_3</artifactId><version>$scala_version</version>
        </dependency>
    </dependencies>
</project>
END
    thrice mvn -q -B -Dstyle.color=never org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
        -DoutputDirectory=lib -DincludeScope=runtime >&2
    rm pom.xml
    source_of 12 >Shapes.scala
}

# source_of COUNT: COUNT modules with types, pattern matching, givens and collections, which is what a compiler works on.
source_of() {
    local i
    echo 'package shapes'
    for ((i = 0; i < $1; i++)); do
        cat <<END

sealed trait Shape$i derives CanEqual:
  def area: Double
  def scaled(by: Double): Shape$i
case class Circle$i(radius: Double) extends Shape$i:
  def area = math.Pi * radius * radius
  def scaled(by: Double) = copy(radius = radius * by)
case class Box$i(width: Double, height: Double) extends Shape$i:
  def area = width * height
  def scaled(by: Double) = Box$i(width * by, height * by)
case class Group$i[+A <: Shape$i](parts: List[A], name: Option[String] = None) extends Shape$i:
  def area = parts.map(_.area).sum
  def scaled(by: Double) = Group$i(parts.map(_.scaled(by)), name)

trait Shown$i[A]:
  extension (a: A) def shown: String
object Shown$i:
  given Shown$i[Shape$i] with
    extension (shape: Shape$i) def shown = shape match
      case Circle$i(radius) if radius > 1 => s"a circle of \$radius"
      case Circle$i(_) => "a dot"
      case Box$i(width, height) if width == height => s"a square of \$width"
      case Box$i(width, height) => s"\$width by \$height"
      case Group$i(parts, name) => parts.map(_.shown).mkString(name.getOrElse(""), ", ", ";")
  given [A](using inner: Shown$i[A]): Shown$i[List[A]] with
    extension (list: List[A]) def shown = list.map(inner.shown).mkString("[", " ", "]")

object Work$i:
  import Shown$i.given
  def all(count: Int): Map[String, Seq[Double]] =
    val shapes = for
      i <- 1 to count
      shape <- List[Shape$i](Circle$i(i), Box$i(i, i + 1), Group$i(List(Circle$i(i), Box$i(1, i)), Some("g")))
      if shape.area > 2
    yield shape.scaled(0.5)
    shapes.groupBy(_.shown.take(3)).view.mapValues(_.map(_.area).sorted.toIndexedSeq).toMap
  def folded(count: Int): Either[String, Double] =
    (1 to count).foldLeft[Either[String, Double]](Right(0.0)) { (sum, i) =>
      for before <- sum; one <- Either.cond(i >= 0, Circle$i(i).area, s"below \$i") yield before + one
    }
END
    done
}
